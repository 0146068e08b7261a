internal import CLinux
internal import Glibc
internal import Locking
internal import Transport

/// Resolves names to addresses without blocking a loop.
///
/// Each name has at most one lookup at a time, on its own thread because `getaddrinfo` blocks. There are as
/// many names as upstreams. Answers are fresh for 5 seconds. An older answer is still used while the name is
/// looked up again, and stays if the lookup fails: a slow or unreachable name server does not affect an
/// upstream whose addresses are known.
///
/// The addresses of the first one's family take turns to be tried first, so that several servers with one name share the
/// connections. One that cannot be connected to is tried last for half a minute.
final class Resolver: Sendable {
  typealias Answer = Result<[SocketAddress], ResolverError>

  struct ResolverError: Error, CustomStringConvertible { let description: String }

  private struct Entry {
    var addresses: [SocketAddress] = []
    var freshUntil: Milliseconds = 0
    var isBeingLookedUp = false
    var waiting: [@Sendable (Answer) -> Void] = []
    /// The address that accepted a connection after others failed. Its family is tried first.
    var preferred: SocketAddress?
    /// When addresses that could not be connected to may be tried first again.
    var avoided: [SocketAddress: Milliseconds] = [:]
    /// How often the addresses were asked for.
    var turn = 0

    /// The addresses in the order in which they are to be tried.
    func ordered(at now: Milliseconds) -> [SocketAddress] {
      guard addresses.count > 1 else { return addresses }
      let first = preferred.flatMap { addresses.contains($0) ? $0 : nil } ?? addresses[0]
      let usable = addresses.filter { avoided[$0] ?? 0 <= now }
      let family = usable.filter { $0.isSameFamily(as: first) }
      let start = family.isEmpty ? 0 : turn % family.count
      return family[start...] + family[..<start] + usable.filter { !$0.isSameFamily(as: first) }
        + addresses.filter { avoided[$0] ?? 0 > now }
    }
  }

  private static let freshness: Milliseconds = 5000
  /// More would be a fault of the name server, or an attack.
  private static let mostAddresses = 64
  private static let avoidance: Milliseconds = 30_000
  private let entries = LockedValue<[String: Entry]>([:])
  private let find: @Sendable (String, UInt16) -> Answer
  private let clock: @Sendable () -> Milliseconds

  /// - Parameter find: The lookup itself, which may block.
  init(
    find: @escaping @Sendable (String, UInt16) -> Answer = { Resolver.lookUp($0, port: $1) },
    clock: @escaping @Sendable () -> Milliseconds = monotonicMilliseconds
  ) {
    self.find = find
    self.clock = clock
  }

  /// Calls `answer` once, possibly before this returns, possibly on another thread.
  func resolve(_ host: String, port: UInt16, answer: @escaping @Sendable (Answer) -> Void) {
    if let literal = SocketAddress(literal: host, port: port) {
      answer(.success([literal]))
      return
    }
    let key = Self.key(host, port)
    let now = clock()
    let (known, begins) = entries.withLock { entries -> ([SocketAddress], Bool) in
      var entry = entries[key] ?? Entry()
      if entry.addresses.isEmpty { entry.waiting.append(answer) }
      let begins = entry.freshUntil <= now && !entry.isBeingLookedUp
      if begins { entry.isBeingLookedUp = true }
      let ordered = entry.ordered(at: now)
      // A caller that waits takes its turn when the answer arrives.
      if !ordered.isEmpty { entry.turn &+= 1 }
      entries[key] = entry
      return (ordered, begins)
    }
    if !known.isEmpty { answer(.success(known)) }
    guard begins else { return }
    do throws(SystemCallError) {
      try Thread.start { [self] in finish(key, find(host, port)) }
    } catch {
      finish(key, .failure(ResolverError(description: "\(host): \(error)")))
    }
  }

  /// Tries the family of `address` first from now on, as long as the name resolves to it: another one failed.
  func prefer(_ address: SocketAddress, for host: String, port: UInt16) {
    entries.withLock { $0[Self.key(host, port)]?.preferred = address }
  }

  /// Tries `address` after all others for a while: it could not be connected to.
  func avoid(_ address: SocketAddress, for host: String, port: UInt16) {
    let end = clock() + Self.avoidance
    let key = Self.key(host, port)
    entries.withLock { entries in
      guard var entry = entries[key], entry.addresses.contains(address) else { return }
      // Of addresses that the name no longer has, none stays.
      entry.avoided = entry.avoided.filter { entry.addresses.contains($0.key) }
      entry.avoided[address] = end
      entries[key] = entry
    }
  }

  private static func key(_ host: String, _ port: UInt16) -> String { "\(host):\(port)" }

  private func finish(_ key: String, _ answer: Answer) {
    let now = clock()
    let waiting = entries.withLock { entries -> [(callback: @Sendable (Answer) -> Void, answer: Answer)] in
      var entry = entries[key] ?? Entry()
      defer { entries[key] = entry }
      let waiting = entry.waiting
      entry.waiting = []
      entry.isBeingLookedUp = false
      if case .success(let addresses) = answer { entry.addresses = Array(addresses.prefix(Self.mostAddresses)) }
      // Without any known address, the next request starts its own lookup.
      guard !entry.addresses.isEmpty else { return waiting.map { ($0, answer) } }
      entry.freshUntil = now + Self.freshness
      return waiting.map { callback in
        defer { entry.turn &+= 1 }
        return (callback, .success(entry.ordered(at: now)))
      }
    }
    for (callback, answer) in waiting { callback(answer) }
  }

  private static func lookUp(_ host: String, port: UInt16) -> Answer {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_ADDRCONFIG
    var list: UnsafeMutablePointer<addrinfo>?
    var code = getaddrinfo(host, String(port), &hints, &list)
    if code == EAI_NONAME {
      // AI_ADDRCONFIG finds nothing, not even localhost, if loopback is the only interface.
      hints.ai_flags = 0
      code = getaddrinfo(host, String(port), &hints, &list)
    }
    guard code == 0 else {
      return .failure(ResolverError(description: "\(host): \(String(cString: gai_strerror(code)))"))
    }
    defer { freeaddrinfo(list) }
    var addresses: [SocketAddress] = []
    var next = list
    while let info = next {
      var storage = sockaddr_storage()
      withUnsafeMutableBytes(of: &storage) {
        $0.copyMemory(from: UnsafeRawBufferPointer(start: info.pointee.ai_addr, count: Int(info.pointee.ai_addrlen)))
      }
      addresses.append(Socket.address(from: storage))
      next = info.pointee.ai_next
    }
    return addresses.isEmpty
      ? .failure(ResolverError(description: "\(host): no address found")) : .success(addresses)
  }
}
