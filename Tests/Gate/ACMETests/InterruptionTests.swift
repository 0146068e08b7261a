import ACME
import ByteCoding
import Foundation
import Locking
import SimulatedDevice
import TestSupport
import Testing
import Transport

@Suite("An order that is interrupted", .serialized, .timeLimit(.minutes(3)))
struct InterruptionTests {
  private static func order(_ directory: String) -> CertificateDocument {
    let settings = CertificateOrderSettings(directory: directory, names: ["gate.example"])
    return CertificateDocument(scope: settings.certificateScope, kind: .order)
  }

  @Test("A process that is killed before it has its certificate loses neither the order nor the key")
  func continued() async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        try await FrontOfPebble.serving(pebble, bench.folder) { front, directory in
          let file = bench.storage.path + "/" + Self.order(directory).name
          // The stored order at the time of each request.
          let orders = LockedValue<[String: String]>([:])
          front.answers { request in
            let step = String(request.path.split(separator: "/").first ?? "")
            let order = try? String(contentsOfFile: file, encoding: .utf8)
            orders.withLock { $0[step] = order }
            return step == "certZ" ? Response(status: 500) : nil
          }
          _ = try await bench.keeper(directory).step()
          #expect(bench.failures.count == 1 && bench.obtained == [])
          // The key was on disk before the server was asked for the certificate.
          let before = orders.withLock(\.self)
          #expect(
            before["finalize-order"]?.contains("PRIVATE KEY") == true && before["sign-me-up"] == nil, "\(before.keys)")
          front.answers { _ in nil }
          bench.clock.advance(by: .seconds(61))
          _ = try await bench.keeper(directory).step()
          let key = try #require(bench.obtained.first).keyPEM.split(separator: "\n")[1]
          // JSON escapes slashes.
          #expect(before["finalize-order"]?.replacingOccurrences(of: "\\/", with: "/").contains(key) == true)
          #expect(front.orders == 1)
          #expect(!FileManager.default.fileExists(atPath: file))
        }
      }
    }
  }

  @Test("An order that the server has forgotten is given up, and a finished one is not continued")
  func forgotten() async throws {
    try await KeeperBench.serving { bench in
      var plan = bench.plan
      plan.lifetime = 36_000
      try await Pebble.serving(plan, bench.folder) { pebble in
        try await FrontOfPebble.serving(pebble, bench.folder) { front, directory in
          let pending = Self.order(directory)
          let kept = LockedValue<[UInt8]?>(nil)
          front.answers { [storage = bench.storage] request in
            let text = try? String(contentsOfFile: "\(storage.path)/\(pending.name)", encoding: .utf8)
            if let text { kept.withLock { $0 = Array(text.utf8) } }
            return nil
          }
          _ = try await bench.keeper(directory).step()
          #expect(bench.obtained.count == 1)
          // As if the process had been killed just before it removed the order.
          let old = try #require(kept.withLock { $0 })
          try await bench.storage.write(old, to: pending)
          bench.clock.advance(by: .seconds(24_100))
          let second = try bench.keeper(directory)
          for _ in 0..<2 { _ = await second.step() }
          #expect(bench.obtained.count == 2 && front.orders == 2)
          // The old order, whose certificate was replaced, is as unknown as one that the server has deleted.
          var gone = try #require(try JSONSerialization.jsonObject(with: Data(old)) as? [String: String])
          gone["url"] = gone["url"]?.replacingOccurrences(of: "my-order", with: "my-order/gone")
          // Its age is not the reason.
          gone["begun_at"] = nil
          try await bench.storage.write(Array(JSONSerialization.data(withJSONObject: gone)), to: pending)
          // The clock is fast by now, so the next renewal is due as soon as an order is allowed again.
          bench.clock.advance(by: .seconds(3700))
          let third = try bench.keeper(directory)
          for _ in 0..<2 { _ = await third.step() }
          #expect(bench.obtained.count == 3 && front.orders == 3 && bench.failures == [], "\(bench.failures)")
        }
      }
    }
  }

  @Test("A process that is killed while it registers finds its account again by the key")
  func registered() async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        try await FrontOfPebble.serving(pebble, bench.folder) { front, directory in
          front.changes { request, response in
            // The server has made the account, and the answer is lost.
            request.path == "/sign-me-up" && response.status == 201 ? Response(status: 500) : response
          }
          _ = try await bench.keeper(directory).step()
          #expect(bench.failures.count == 1)
          let statuses = LockedValue<[Int]>([])
          front.changes { request, response in
            if request.path == "/sign-me-up" { statuses.withLock { $0.append(response.status) } }
            return response
          }
          bench.clock.advance(by: .seconds(61))
          _ = try await bench.keeper(directory).step()
          // 200 instead of 201: the account existed (RFC 8555 section 7.3.1).
          #expect(bench.obtained.count == 1 && statuses.withLock { $0.last } == 200, "\(bench.failures)")
        }
      }
    }
  }
}
