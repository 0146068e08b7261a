internal import CLinux
internal import Glibc
internal import Locking
internal import Transport

/// Names to addresses, without holding up a loop.
///
/// One lookup a name at a time, each on a thread of its own, since `getaddrinfo` waits; there are as many names as
/// there are upstreams. Answers are kept for a few seconds, and longer if the next lookup fails.
final class Resolver: Sendable {
  typealias Answer = Result<[SocketAddress], ResolverError>

  struct ResolverError: Error, CustomStringConvertible { let description: String }

  private struct Entry {
    var addresses: [SocketAddress] = []
    var freshUntil: Milliseconds = 0
    var waiting: [@Sendable (Answer) -> Void] = []
  }

  private static let freshness: Milliseconds = 5000
  private let entries = Guarded<[String: Entry]>([:])

  /// Calls `answer` once, perhaps before this returns, perhaps on another thread.
  func resolve(_ host: String, port: UInt16, answer: @escaping @Sendable (Answer) -> Void) {
    if let literal = SocketAddress(literal: host, port: port) {
      answer(.success([literal]))
      return
    }
    let key = "\(host):\(port)"
    let now = monotonicMilliseconds()
    let (known, isFirst) = entries.withLock { entries -> ([SocketAddress]?, Bool) in
      var entry = entries[key] ?? Entry()
      if entry.freshUntil > now { return (entry.addresses, false) }
      entry.waiting.append(answer)
      entries[key] = entry
      return (nil, entry.waiting.count == 1)
    }
    if let known {
      answer(.success(known))
    } else if isFirst {
      do throws(SystemCallError) {
        try Thread.start { [self] in finish(key, Self.lookUp(host, port: port)) }
      } catch {
        finish(key, .failure(ResolverError(description: "\(host): \(error)")))
      }
    }
  }

  private func finish(_ key: String, _ answer: Answer) {
    let (result, waiting) = entries.withLock { entries -> (Answer, [@Sendable (Answer) -> Void]) in
      var entry = entries[key] ?? Entry()
      let waiting = entry.waiting
      entry.waiting = []
      var result = answer
      switch answer {
      case .success(let addresses):
        entry.addresses = addresses
        entry.freshUntil = monotonicMilliseconds() + Self.freshness
      case .failure:
        if !entry.addresses.isEmpty { result = .success(entry.addresses) }
      }
      entries[key] = entry
      return (result, waiting)
    }
    for callback in waiting { callback(result) }
  }

  private static func lookUp(_ host: String, port: UInt16) -> Answer {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_ADDRCONFIG
    var list: UnsafeMutablePointer<addrinfo>?
    var code = getaddrinfo(host, String(port), &hints, &list)
    if code == EAI_NONAME {
      // Without any interface but loopback, AI_ADDRCONFIG finds nothing, not even localhost.
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
      ? .failure(ResolverError(description: "\(host): no address")) : .success(addresses)
  }
}
