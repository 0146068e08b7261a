import Foundation
import Locking
import Testing
import Transport

@testable import TransportEngine

@Suite("Name resolution", .timeLimit(.minutes(2)))
struct ResolverTests {
  private static let first = SocketAddress.ipv4([192, 0, 2, 1], port: 80)
  private static let second = SocketAddress.ipv4([192, 0, 2, 2], port: 80)

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

  @Test("The address that accepted a connection stays first while the name has it")
  func preferred() async {
    let script = Script()
    let resolver = script.makeResolver()
    script.answer(.success([Self.first, Self.second]))
    #expect(await ask(resolver) == [Self.first, Self.second])
    resolver.prefer(Self.second, for: "backend.test", port: 80)
    #expect(await ask(resolver) == [Self.second, Self.first])
  }
}

extension EngineTests {
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
