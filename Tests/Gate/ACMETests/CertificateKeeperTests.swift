import ACME
import ByteCoding
import Cryptography
import Foundation
import Locking
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A certificate from pebble", .serialized, .timeLimit(.minutes(3)))
struct CertificateKeeperTests {
  @Test("One certificate for several names is obtained, stored with mode 0600, and served")
  func severalNames() async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        let root = try await pebble.root(in: bench.folder)
        await #expect(throws: ClientError.self) { try await bench.connect(trusting: root) }
        let names = ["gate.example", "api.example", "chat.example"]
        let keeper = try bench.keeper(pebble.directory, names: names)
        #expect(await keeper.step() == .zero)
        #expect(bench.failures == [])
        for name in names { _ = try await bench.connect(name, trusting: root) }
        await #expect(throws: ClientError.self) { try await bench.connect("other.example", trusting: root) }
        // Nothing more to do for some time.
        #expect(await keeper.step() > .seconds(30))
        #expect(bench.obtained.count == 1)

        let files = FileManager.default.enumerator(atPath: bench.path + "/acme")?.allObjects as? [String] ?? []
        #expect(files.contains { $0.hasSuffix("/certificate.pem") } && files.contains { $0.hasSuffix("/account.json") })
        for file in files {
          let attributes = try FileManager.default.attributesOfItem(atPath: "\(bench.path)/acme/\(file)")
          let mode = attributes[.posixPermissions] as? Int
          #expect(mode == (attributes[.type] as? FileAttributeType == .typeDirectory ? 0o700 : 0o600), "\(file)")
        }
        // Another process has it without asking the server.
        let next = try bench.keeper(pebble.directory, names: names)
        for _ in 0..<2 { _ = await next.step() }
        #expect(bench.obtained.count == 1)
        let stored = try await CertificateKeeper.stored(
          CertificateOrderSettings(directory: pebble.directory, names: names), in: bench.storage)
        #expect(stored == bench.obtained.first)
      }
    }
  }

  @Test("A short one is renewed at half of its lifetime, with the same account")
  func renewal() async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        let keeper = try bench.keeper(pebble.directory)
        _ = await keeper.step()
        let first = try #require(bench.obtained.first)
        bench.clock.advance(by: .seconds(3600 * 0.44))
        #expect(await keeper.step() > .zero)
        #expect(bench.obtained.count == 1)
        bench.clock.advance(by: .seconds(3600 * 0.06))
        #expect(await keeper.step() == .zero)
        let second = try #require(bench.obtained.last)
        #expect(bench.obtained.count == 2 && second.leaf != first.leaf)
        let accounts = bench.events.withLock { events in
          events.count { if case .accountMade = $0 { true } else { false } }
        }
        #expect(accounts == 1)
      }
    }
  }

  @Test("An account that the server has lost is made again, with the same key")
  func lostAccount() async throws {
    try await KeeperBench.serving { bench in
      var plan = bench.plan
      plan.port = try Places.freePort()
      for round in 1...2 {
        try await Pebble.serving(plan, bench.folder) { pebble in
          let keeper = try bench.keeper(pebble.directory)
          // With a certificate, the first question is whether the server gives renewal information.
          for _ in 0..<2 { _ = await keeper.step() }
          #expect(bench.failures == [])
          #expect(bench.obtained.count == round)
        }
        bench.clock.advance(by: .seconds(2600))
      }
    }
  }

  @Test("A name that the server refuses is reported with the server's words, and retried after a minute")
  func refusedOrder() async throws {
    try await KeeperBench.serving { bench in
      var plan = bench.plan
      plan.refused = ["blocked.example"]
      try await Pebble.serving(plan, bench.folder) { pebble in
        let keeper = try bench.keeper(pebble.directory, names: ["gate.example", "blocked.example"])
        _ = await keeper.step()
        let failure = try #require(bench.failures.first)
        #expect(failure.code == "rejectedIdentifier", "\(failure)")
        #expect("\(failure)".contains("blocked.example") && failure.hint.contains("tls.acme.domains"))
        #expect(await keeper.step() > .seconds(30))
        #expect(bench.failures.count == 1)
        bench.clock.advance(by: .seconds(61))
        _ = await keeper.step()
        #expect(bench.failures.count == 2)
        #expect(bench.status.withLock(\.lastFailure)?.code == "rejectedIdentifier")
      }
    }
  }

  @Test("A validation that does not reach the listener is reported with its name")
  func notValidated() async throws {
    try await KeeperBench.serving { bench in
      bench.isDeaf.withLock { $0 = true }
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        _ = try await bench.keeper(pebble.directory).step()
        guard case .notValidated(let name, .tlsALPN, _) = try #require(bench.failures.first) else {
          Issue.record("\(bench.failures)")
          return
        }
        #expect(name == "gate.example" && bench.failures[0].hint.contains("port 443"))
      }
    }
  }

  @Test("A wrong directory is reported: no server, another certificate authority, another document")
  func wrongDirectory() async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        _ = try await bench.keeper("https://localhost:1/dir").step()
        #expect(bench.failures.last?.code == "unreachable")
        _ = try await bench.keeper(pebble.directory, authorityFile: bench.folder.attestationRootPath).step()
        #expect(bench.failures.last?.code == "untrusted")
        #expect(bench.failures.last?.hint.contains("tls.acme.ca_file") == true)
        _ = try await bench.keeper(pebble.directory + "ectory").step()
        #expect(bench.failures.last?.code == "malformed")
        #expect(bench.failures.last?.hint.contains("tls.acme.directory") == true)
        _ = try await bench.keeper(pebble.directory.replacingOccurrences(of: "/dir", with: "/nonce-plz")).step()
        #expect(bench.failures.last?.code == "malformed")
        #expect(bench.failures.last?.hint.contains("tls.acme.directory") == true)
        #expect(bench.failures.count == 4)
      }
    }
  }

  @Test("A server for its customers gets an external account binding; without one, or with a wrong one, it is reported")
  func binding() async throws {
    let key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
    try await KeeperBench.serving { bench in
      var plan = bench.plan
      plan.bindings = ["kid-1": key]
      try await Pebble.serving(plan, bench.folder) { pebble in
        _ = try await bench.keeper(pebble.directory).step()
        #expect(bench.failures == [.bindingRequired])
        let wrong = ExternalAccountBinding(keyID: "kid-2", key: key)
        bench.clock.advance(by: .seconds(100))
        _ = try await bench.keeper(pebble.directory, binding: wrong).step()
        #expect(bench.failures.count == 2)
        bench.clock.advance(by: .seconds(300))
        _ = try await bench.keeper(pebble.directory, binding: ExternalAccountBinding(keyID: "kid-1", key: key)).step()
        #expect(bench.failures.count == 2 && bench.obtained.count == 1, "\(bench.failures)")
      }
    }
  }

  @Test("A rate limit is reported with its end, and respected")
  func rateLimit() async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        try await FrontOfPebble.serving(pebble, bench.folder) { front, directory in
          front.answers { request in
            guard request.path == "/order-plz" else { return nil }
            let body = #"{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many certificates"}"#
            return Response(
              status: 429,
              headers: HeaderFields([
                .init(name: "Retry-After", value: "7200"), .init(name: "Replay-Nonce", value: "AAAA"),
              ]), body: Array(body.utf8))
          }
          let keeper = try bench.keeper(directory)
          _ = await keeper.step()
          guard case .rateLimited(_, let until?) = try #require(bench.failures.first) else {
            Issue.record("\(bench.failures)")
            return
          }
          #expect(abs(until.since(bench.clock.clock.now()).components.seconds - 7200) < 60)
          #expect("\(bench.failures[0])".contains("too many certificates"))
          front.answers { _ in nil }
          bench.clock.advance(by: .seconds(3600))
          // A restart does not shorten it.
          for keeper in [keeper, try bench.keeper(directory)] {
            let requests = front.requests.withLock(\.count)
            #expect(await keeper.step() > .zero)
            #expect(front.requests.withLock(\.count) == requests)
          }
          bench.clock.advance(by: .seconds(3700))
          _ = await keeper.step()
          #expect(bench.obtained.count == 1)
        }
      }
    }
  }

  @Test(
    "A wrong clock is named: the certificate is served, and is not ordered again all the time",
    arguments: [-86_400, 86_400, 200 * 86_400] as [Int64])
  func clockSkew(ahead: Int64) async throws {
    try await KeeperBench.serving { bench in
      var plan = bench.plan
      plan.lifetime = ahead > 86_400 ? 90 * 86_400 : 3600
      try await Pebble.serving(plan, bench.folder) { pebble in
        bench.clock.advance(by: .seconds(ahead))
        let keeper = try bench.keeper(pebble.directory)
        _ = await keeper.step()
        #expect(bench.failures.map(\.code) == ["clock"])
        #expect(bench.failures[0].hint.contains("clock"))
        let difference = bench.events.withLock { events in
          events.compactMap { event -> Int64? in
            if case .clocksDiffer(let difference) = event { difference.components.seconds } else { nil }
          }
        }
        #expect(difference.allSatisfy { abs($0 + ahead) < 60 } && !difference.isEmpty)
        _ = try await bench.connect(trusting: pebble.root(in: bench.folder))
        bench.clock.advance(by: .seconds(ahead > 86_400 ? 80_000 : 300))
        for _ in 0..<3 { _ = await keeper.step() }
        #expect(bench.obtained.count == 1)
      }
    }
  }

  @Test("Renewal information moves the renewal; a server that fails to give it moves nothing")
  func renewalInformation() async throws {
    try await KeeperBench.serving { bench in
      var plan = bench.plan
      plan.lifetime = 90 * 86_400
      try await Pebble.serving(plan, bench.folder) { pebble in
        try await FrontOfPebble.serving(pebble, bench.folder) { front, directory in
          front.changes { request, response in
            guard request.path == "/dir" else { return response }
            let text = String(decoding: response.body, as: UTF8.self)
            let more = text.replacingOccurrences(
              of: "{\n   \"keyChange\"",
              with: "{\n   \"renewalInfo\": \"\(directory.dropLast("/dir".count))/renewal\",\n   \"keyChange\"")
            return Response(status: response.status, headers: response.headers, body: Array(more.utf8))
          }
          front.answers { request in
            request.path.hasPrefix("/renewal/") ? Response(status: 503) : nil
          }
          let keeper = try bench.keeper(directory)
          _ = await keeper.step()
          #expect(await keeper.step() == .zero)
          #expect(await keeper.step() > .zero)
          #expect(bench.obtained.count == 1 && bench.failures == [])
          let id = try #require(bench.obtained[0].renewalID)
          #expect(front.requests.withLock { $0.contains("GET /renewal/\(id)") })
          // The certificates of this authority are about to be revoked.
          front.answers { request in
            guard request.path.hasPrefix("/renewal/") else { return nil }
            let window = #"{"start":"2021-01-03T00:00:00Z","end":"2021-01-07T00:00:00Z"}"#
            let body = #"{"suggestedWindow":\#(window),"explanationURL":"https://acme.example/why"}"#
            return Response(status: 200, body: Array(body.utf8))
          }
          bench.clock.advance(by: .seconds(86_400 + 1))
          // The first question and the order of the renewal.
          for _ in 0..<3 where bench.obtained.count == 1 { _ = await keeper.step() }
          #expect(bench.obtained.count == 2 && bench.failures == [])
          let learned = bench.events.withLock { events in
            events.contains { if case .learned(let window, _) = $0 { window.explanation != nil } else { false } }
          }
          #expect(learned)
        }
      }
    }
  }

  @Test("Of two keepers of one folder, one orders and both serve")
  func twoKeepers() async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        let keepers = [try bench.keeper(pebble.directory), try bench.keeper(pebble.directory)]
        async let first = keepers[0].step()
        async let second = keepers[1].step()
        _ = await (first, second)
        for keeper in keepers { _ = await keeper.step() }
        let orders = bench.events.withLock { events in
          events.count { if case .ordering = $0 { true } else { false } }
        }
        #expect(orders == 1 && bench.failures == [])
      }
    }
  }

  @Test("Nothing is ordered that could not be stored")
  func fullDisk() async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        let keeper = try bench.keeper(pebble.directory, storage: CertificateFolder(path: "/proc/acme"))
        #expect(await keeper.step() >= .seconds(5))
        let events = bench.events.withLock(\.self)
        #expect(events.count == 1)
        guard case .storageFailed = events.first else {
          Issue.record("\(events)")
          return
        }
      }
    }
  }
}
