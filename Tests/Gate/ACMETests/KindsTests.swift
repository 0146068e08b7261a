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

@Suite("Certificates of other kinds from pebble", .serialized, .timeLimit(.minutes(3)))
struct KindsTests {
  @Test("A certificate for an address and a name is obtained; clients without a server name get it")
  func address() async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        let keeper = try bench.keeper(pebble.directory, names: ["127.0.0.1", "gate.example"])
        _ = await keeper.step()
        #expect(bench.failures == [])
        #expect(bench.obtained.first?.leaf.ipAddresses == [[127, 0, 0, 1]])
        let root = try await pebble.root(in: bench.folder)
        for name in ["127.0.0.1", "gate.example"] { _ = try await bench.connect(name, trusting: root) }
        let seen = try await ChildProcess.run(
          Places.tool("openssl"),
          [
            "s_client", "-connect", "127.0.0.1:\(bench.engine.address.port)", "-noservername", "-CAfile", root,
            "-verify_ip", "127.0.0.1", "-verify_return_error",
          ])
        #expect(seen.exit == .code(0), "\(seen.errors)")
      }
    }
  }

  @Test("An address whose validation does not reach the listener is reported as such")
  func unreachedAddress() async throws {
    try await KeeperBench.serving { bench in
      bench.isDeaf.withLock { $0 = true }
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        _ = try await bench.keeper(pebble.directory, names: ["127.0.0.1"]).step()
        guard case .notValidated(let name, .tlsALPN, _) = try #require(bench.failures.first) else {
          Issue.record("\(bench.failures)")
          return
        }
        #expect(name == "127.0.0.1")
      }
    }
  }

  /// The members of the signed payload of `request`.
  private static func payload(of request: Request) -> [String: Any] {
    let outer = try? JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any]
    let payload = (outer?["payload"] as? String).flatMap { Base64URL.decode($0) } ?? []
    return (try? JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any]) ?? [:]
  }

  @Test("The profile is in the order if the server offers it")
  func profile() async throws {
    try await withProfiles(#"{"classic":"90 days","shortlived":"6 days"}"#) { bench, directory, ordered in
      _ = try await bench.keeper(directory) { $0.profile = "shortlived" }.step()
      #expect(bench.failures == [] && bench.obtained.count == 1)
      #expect(Set(ordered.withLock(\.self)) == ["shortlived"])
    }
  }

  @Test("An unknown profile is refused before an account is made, with those that the server offers")
  func unknownProfile() async throws {
    try await withProfiles(#"{"classic":"90 days","shortlived":"6 days"}"#) { bench, directory, ordered in
      _ = try await bench.keeper(directory) { $0.profile = "shortlife" }.step()
      #expect(bench.failures == [.unknownProfile(name: "shortlife", offered: ["classic", "shortlived"])])
      #expect("\(bench.failures[0])".hasSuffix("the profile shortlife: it offers classic, shortlived"))
      #expect(ordered.withLock(\.isEmpty))
      let hasAccount = bench.events.withLock { events in
        events.contains { if case .accountMade = $0 { true } else { false } }
      }
      #expect(!hasAccount)
    }
  }

  @Test("A server without profiles is named as such; another form of its list disturbs no other order")
  func noProfiles() async throws {
    try await withProfiles(#"["classic"]"#) { bench, directory, ordered in
      _ = try await bench.keeper(directory) { $0.profile = "classic" }.step()
      #expect(bench.failures == [.unknownProfile(name: "classic", offered: [])])
      bench.clock.advance(by: .seconds(100))
      _ = try await bench.keeper(directory).step()
      #expect(bench.obtained.count == 1 && ordered.withLock(\.self).allSatisfy { $0 == nil })
    }
  }

  /// Calls `body` with the directory of a pebble that offers `profiles`, JSON, which pebble 2.4 cannot, and with the
  /// profiles of the orders so far.
  private func withProfiles(
    _ profiles: String, _ body: (KeeperBench, _ directory: String, LockedValue<[String?]>) async throws -> Void
  ) async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        try await FrontOfPebble.serving(pebble, bench.folder) { front, directory in
          let ordered = LockedValue<[String?]>([])
          front.changes { request, response in
            guard request.path == "/dir" else { return response }
            let text = String(decoding: response.body, as: UTF8.self)
              .replacingOccurrences(of: #""meta": {"#, with: #""meta": { "profiles": \#(profiles),"#)
            return Response(status: response.status, headers: response.headers, body: Array(text.utf8))
          }
          front.answers { request in
            if request.path == "/order-plz" {
              let profile = Self.payload(of: request)["profile"] as? String
              ordered.withLock { $0.append(profile) }
            }
            return nil
          }
          try await body(bench, directory, ordered)
        }
      }
    }
  }

  @Test("The request has a common name only if wanted: the first DNS name", arguments: [false, true])
  func commonName(isWanted: Bool) async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        try await FrontOfPebble.serving(pebble, bench.folder) { front, directory in
          let requests = LockedValue<[[UInt8]]>([])
          front.answers { request in
            if let text = Self.payload(of: request)["csr"] as? String, let der = Base64URL.decode(text) {
              requests.withLock { $0.append(der) }
            }
            return nil
          }
          let names = ["127.0.0.1", "gate.example", "api.example"]
          _ = try await bench.keeper(directory, names: names) { $0.usesCommonName = isWanted }.step()
          #expect(bench.failures == [] && bench.obtained.count == 1)
          let file = bench.path + "/request.der"
          try Data(try #require(requests.withLock(\.last))).write(to: URL(fileURLWithPath: file))
          let shown = try await ChildProcess.run(
            Places.tool("openssl"), ["req", "-inform", "DER", "-in", file, "-noout", "-subject", "-verify", "-text"])
          let text = shown.output.joined(separator: "\n")
          #expect(text.contains("CN = gate.example") == isWanted, "\(text)")
          #expect(text.contains("DNS:gate.example, DNS:api.example, IP Address:127.0.0.1"), "\(text)")
        }
      }
    }
  }
}
