package asynclock;
public final class Peer { public static void main(String[] a) {} }
