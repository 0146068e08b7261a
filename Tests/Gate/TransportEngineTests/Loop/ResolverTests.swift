import Foundation
import Locking
import Testing
import Transport

@testable import TransportEngine

@Suite("Name resolution", .timeLimit(.minutes(2)))
struct ResolverTests {
  private static let first = SocketAddress.ipv4([192, 0, 2, 1], port: 80)
  private static let second = SocketAddress.ipv4([192, 0, 2, 2], port: 80)
  private static let sixth = SocketAddress.ipv6([0x20, 1, 0xD, 0xB8] + [UInt8](repeating: 0, count: 12), port: 80)

  /// A name server that answers on request of the test, with a clock that the test advances.
  private final class Script: Sendable {
    let time = LockedValue<Milliseconds>(1000)
    /// Yields when a lookup has begun.
    let (begun, begin) = AsyncStream.makeStream(of: Void.self)
    private let answers = LockedValue<[Resolver.Answer]>([])
    private let ready = DispatchSemaphore(value: 0)

    func makeResolver() -> Resolver {
      Resolver(
        find: { [self] _, _ in
          begin.yield()
          ready.wait()
          return answers.withLock { $0.removeFirst() }
        }, clock: { [time] in time.withLock(\.self) })
    }

    func answer(_ answer: Resolver.Answer) {
      answers.withLock { $0.append(answer) }
      ready.signal()
    }
  }

  private func ask(_ resolver: Resolver) async -> [SocketAddress]? {
    await withCheckedContinuation { continuation in
      resolver.resolve("backend.test", port: 80) { continuation.resume(returning: try? $0.get()) }
    }
  }

  private static let failure = Resolver.Answer.failure(Resolver.ResolverError(description: "no server"))

  @Test("A known address is returned immediately, even if it is old and the name server is slow or unavailable")
  func stale() async {
    let script = Script()
    let resolver = script.makeResolver()
    var lookups = script.begun.makeAsyncIterator()
    script.answer(.success([Self.first]))
    #expect(await ask(resolver) == [Self.first])
    await lookups.next()
    script.time.withLock { $0 += 6000 }
    // The lookup in the background is not complete, and only one runs at a time.
    for _ in 0..<3 { #expect(await ask(resolver) == [Self.first]) }
    await lookups.next()
    script.answer(Self.failure)
    script.time.withLock { $0 += 6000 }
    // Independent of whether the failure has been recorded yet.
    #expect(await ask(resolver) == [Self.first])
    script.answer(.success([Self.second]))
    while await ask(resolver) != [Self.second] {
      script.time.withLock { $0 += 6000 }
      script.answer(.success([Self.second]))
      await Task.yield()
    }
  }

  @Test("All callers wait for an unknown name, and it is looked up again after a failure")
  func unknown() async {
    let script = Script()
    let resolver = script.makeResolver()
    var lookups = script.begun.makeAsyncIterator()
    async let one = ask(resolver)
    await lookups.next()
    async let other = ask(resolver)
    script.answer(Self.failure)
    #expect(await one == nil)
    script.answer(.success([Self.first]))
    // The second call may have joined the failed lookup or started the next one.
    let answer = await other
    #expect(answer == nil || answer == [Self.first])
    #expect(await ask(resolver) == [Self.first])
  }

  @Test("Addresses of one family take turns; the others stay behind them")
  func turns() async {
    let script = Script()
    let resolver = script.makeResolver()
    script.answer(.success([Self.first, Self.second, Self.sixth]))
    for _ in 0..<2 {
      #expect(await ask(resolver) == [Self.first, Self.second, Self.sixth])
      #expect(await ask(resolver) == [Self.second, Self.first, Self.sixth])
    }
    // It accepted a connection after those failed.
    resolver.prefer(Self.sixth, for: "backend.test", port: 80)
    #expect(await ask(resolver)?.first == Self.sixth)
    #expect(await ask(resolver)?.first == Self.sixth)
  }

  @Test("An address that cannot be connected to is tried last for half a minute")
  func avoided() async {
    let script = Script()
    let resolver = script.makeResolver()
    script.answer(.success([Self.first, Self.second]))
    #expect(await ask(resolver) == [Self.first, Self.second])
    resolver.avoid(Self.second, for: "backend.test", port: 80)
    // Of a name's past or of another name: nothing to avoid.
    resolver.avoid(Self.sixth, for: "backend.test", port: 80)
    resolver.avoid(Self.first, for: "other.test", port: 80)
    for _ in 0..<3 { #expect(await ask(resolver) == [Self.first, Self.second]) }
    script.time.withLock { $0 += 4000 }
    #expect(await ask(resolver) == [Self.first, Self.second])
    script.time.withLock { $0 += 26_001 }
    script.answer(.success([Self.first, Self.second]))
    let answers = [await ask(resolver), await ask(resolver)]
    #expect(Set(answers.map { $0?.first }) == [Self.first, Self.second])
    // If all are avoided, all are tried.
    for address in [Self.first, Self.second] { resolver.avoid(address, for: "backend.test", port: 80) }
    #expect(await ask(resolver)?.count == 2)
  }

  @Test("Of a name with a thousand addresses, 64 are used")
  func manyAddresses() async {
    let script = Script()
    let resolver = script.makeResolver()
    script.answer(.success((0..<1000).map { .ipv4([10, 0, UInt8($0 / 256), UInt8($0 % 256)], port: 80) }))
    #expect(await ask(resolver)?.count == 64)
  }
}

extension EngineTests {
  @Suite("Several upstreams of one request", .timeLimit(.minutes(2)))
  struct SeveralUpstreamsTests {
    /// A port of this machine at which nothing listens.
    private static func closedPort() throws -> UInt16 {
      let listener = try RawListener()
      return listener.port
    }

    private func opens(_ gate: TestGate, at listener: RawListener) throws {
      let (client, backend) = try gate.open(through: listener)
      let frame = FrameTrackerTests.frame(1, [1, 2, 3], mask: FrameTrackerTests.mask)
      try client.send(frame)
      #expect(try backend.read(frame.count) == frame)
    }

    @Test("One that refuses connections, does not speak TLS, or has no address is left for the next", arguments: 0..<3)
    func failover(kind: Int) async throws {
      let listener = try RawListener()
      let plain = try RawListener()
      let first: Upstream =
        switch kind {
        case 0: .webSocket(host: "127.0.0.1", port: try Self.closedPort())
        case 1: .secureWebSocket(host: "127.0.0.1", port: plain.port, tls: UpstreamTLS())
        default: .webSocket(host: "backend.invalid", port: 80)
        }
      let gate = try TestGate(upstream: first)
      gate.record.others.withLock { $0 = [.webSocket(host: "127.0.0.1", port: listener.port)] }
      let closer = Task.detached { if kind == 1 { try plain.accept().sendEnd() } }
      try opens(gate, at: listener)
      try await closer.value
      #expect(gate.record.passedOver.withLock(\.count) == 1 && gate.record.reached.withLock(\.self) == 1)
    }

    @Test("One that does not answer gets half of the time; the next one gets the rest")
    func silent() async throws {
      let silent = try SilentAddress()
      let listener = try RawListener()
      let gate = try TestGate(
        upstream: .webSocket(host: "127.0.0.1", port: silent.listener.port),
        limits: SessionLimits(connectTimeout: .seconds(7200)))
      gate.record.others.withLock { $0 = [.webSocket(host: "127.0.0.1", port: listener.port)] }
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      var event = pollfd(fd: listener.fd, events: Int16(POLLIN), revents: 0)
      while poll(&event, 1, 0) == 0 {
        // An hour, which passes on the loop's clock alone.
        await gate.engine.pass(.seconds(600))
        try await Task.sleep(for: .milliseconds(10))
      }
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send(TestGate.switching)
      #expect(try client.readHead().hasPrefix("HTTP/1.1 101 "))
      #expect(gate.record.passedOver.withLock(\.self) == [.timedOut])
    }

    @Test("If all fail, the client gets the answer of the last one, and each has been reported")
    func allFail() throws {
      let gate = try TestGate(upstream: .webSocket(host: "127.0.0.1", port: try Self.closedPort()))
      gate.record.others.withLock {
        $0 = [.unix(path: "/nonexistent/a.sock"), .unix(path: "/nonexistent/b.sock")]
      }
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      #expect(try client.readHead().hasPrefix("HTTP/1.1 502 "))
      #expect(gate.record.passedOver.withLock(\.count) == 3)
    }

    @Test("After an answer no other is tried: the request has been sent")
    func refused() throws {
      let (listener, other) = (try RawListener(), try RawListener())
      let gate = try TestGate(upstream: .webSocket(host: "127.0.0.1", port: listener.port))
      gate.record.others.withLock { $0 = [.webSocket(host: "127.0.0.1", port: other.port)] }
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      let backend = try listener.accept()
      _ = try backend.readHead()
      // Whatever the answer will be, the server is there.
      #expect(gate.record.reached.withLock(\.self) == 1)
      backend.reset()
      #expect(try client.readHead().hasPrefix("HTTP/1.1 502 "))
      #expect(gate.record.passedOver.withLock(\.self) == [] && gate.record.reached.withLock(\.self) == 1)
    }
  }

  /// An address whose accept queue is full, so that the kernel answers no connection.
  private final class SilentAddress {
    let listener: RawListener
    let address: SocketAddress
    private var waiting: [Int32] = []

    init() throws {
      listener = try RawListener()
      address = .ipv4([127, 0, 0, 1], port: listener.port)
      listen(listener.fd, 0)
      for _ in 0..<4 {
        let fd = try Socket.make(for: address)
        _ = try Socket.connect(fd, to: address)
        waiting.append(fd)
      }
    }

    deinit { for fd in waiting { close(fd) } }
  }

  @Suite("Upstreams with several addresses", .timeLimit(.minutes(2)))
  struct SeveralAddressesTests {
    private func gate(_ resolver: Resolver, connectTimeout: Duration) async throws -> TestGate {
      let gate = try TestGate(
        upstream: .webSocket(host: "backend.test", port: 80), limits: SessionLimits(connectTimeout: connectTimeout))
      await withCheckedContinuation { continuation in
        gate.engine.loops[0].execute { loop in
          loop.resolver = resolver
          continuation.resume()
        }
      }
      return gate
    }

    @Test("A silent address leaves time for the others and is not tried first the next time")
    func silent() async throws {
      let silent = try SilentAddress()
      let listener = try RawListener()
      let addresses = [silent.address, .ipv4([127, 0, 0, 1], port: listener.port)]
      let isAsked = LockedValue(false)
      let resolver = Resolver(find: { _, _ in
        isAsked.withLock { $0 = true }
        return .success(addresses)
      })
      // An attempt at the silent address takes half of the timeout, an hour, which passes on the loop's clock alone.
      let gate = try await gate(resolver, connectTimeout: .seconds(7200))
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      while !isAsked.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(10)) }
      var event = pollfd(fd: listener.fd, events: Int16(POLLIN), revents: 0)
      while poll(&event, 1, 0) == 0 {
        await gate.engine.pass(.seconds(600))
        try await Task.sleep(for: .milliseconds(10))
      }
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send(TestGate.switching)
      #expect(try client.readHead().hasPrefix("HTTP/1.1 101 "))
      // No time passes.
      for _ in 0..<3 { _ = try gate.open(through: listener) }
    }

    @Test("A client tries the next address as well")
    func client() async throws {
      let silent = try SilentAddress()
      let listener = try RawListener()
      let addresses = [silent.address, .ipv4([127, 0, 0, 1], port: listener.port)]
      let engine = try ClientEngine()
      await withCheckedContinuation { continuation in
        engine.loop.execute { loop in
          loop.resolver = Resolver(find: { _, _ in .success(addresses) })
          continuation.resume()
        }
      }
      try await engine.tryConnecting(to: .webSocket(host: "backend.test", port: 80), within: .seconds(4))
    }

    @Test("A client's timeout also ends the attempt at the last address, after one that was silent")
    func silentClient() async throws {
      let (first, last) = (try SilentAddress(), try SilentAddress())
      let addresses = [first.address, last.address]
      let engine = try ClientEngine()
      await withCheckedContinuation { continuation in
        engine.loop.execute { loop in
          loop.resolver = Resolver(find: { _, _ in .success(addresses) })
          continuation.resume()
        }
      }
      await #expect(throws: ClientError.timedOut) {
        try await engine.tryConnecting(to: .webSocket(host: "backend.test", port: 80), within: .milliseconds(600))
      }
      // Until now, no queue had room.
      withExtendedLifetime((first, last)) {}
    }

    @Test("A name resolution that times out is reported as such")
    func unresolved() async throws {
      let forever = DispatchSemaphore(value: 0)
      let resolver = Resolver(find: { _, _ in
        forever.wait()
        return .success([])
      })
      let gate = try await gate(resolver, connectTimeout: .milliseconds(300))
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      #expect(
        String(decoding: try client.readToEnd(), as: UTF8.self).contains("backend.test: name resolution timed out"))
      forever.signal()
    }
  }
}
