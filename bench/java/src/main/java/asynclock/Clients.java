// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Makes clients of both libraries. Each has connections of its own. Those of Redisson share
 * their threads, because a hundred of them would have thousands otherwise.
 */
final class Clients {

	private static final int SESSION_TIMEOUT = 15_000;

	private final EventLoopGroup loops = new MultiThreadIoEventLoopGroup(4, NioIoHandler.newFactory());
	private final ExecutorService callbacks = Executors.newFixedThreadPool(16);
	private final String redis;
	private final String zooKeeper;

	Clients(String redis, String zooKeeper) {
		this.redis = redis;
		this.zooKeeper = zooKeeper;
	}

	RedissonClient redisson() {
		Config config = new Config();
		config.setEventLoopGroup(this.loops).setExecutor(this.callbacks);
		config.useSingleServer().setAddress("redis://" + this.redis)
				.setConnectionMinimumIdleSize(1).setSubscriptionConnectionMinimumIdleSize(1);
		return Redisson.create(config);
	}

	CuratorFramework curator() throws InterruptedException {
		CuratorFramework curator = CuratorFrameworkFactory.newClient(this.zooKeeper, SESSION_TIMEOUT, SESSION_TIMEOUT,
				new ExponentialBackoffRetry(50, 10));
		curator.start();
		curator.blockUntilConnected();
		return curator;
	}

	void close() {
		this.loops.shutdownGracefully();
		this.callbacks.shutdownNow();
	}

}
