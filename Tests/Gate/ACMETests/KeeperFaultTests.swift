import ACME
import ByteCoding
import Foundation
import Locking
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A keeper among failures", .serialized, .timeLimit(.minutes(3)))
struct KeeperFaultTests {
  private static let problem = "urn:ietf:params:acme:error:"

  private static func document(
    _ kind: CertificateDocument.Kind, _ directory: String, _ names: [String] = ["gate.example"]
  ) -> CertificateDocument {
    CertificateDocument(
      scope: CertificateOrderSettings(directory: directory, names: names).certificateScope, kind: kind)
  }

  /// Calls `body` with a bench and a proxy in front of a pebble.
  ///
  /// - Parameters:
  ///   - refusedNonces: the percentage of good nonces that pebble refuses, so that requests are repeated.
  ///   - lifetime: the lifetime of certificates in seconds; `nil` for an hour.
  private func withFront(
    refusedNonces: Int? = nil, lifetime: Int? = nil,
    _ body: (KeeperBench, FrontOfPebble, _ directory: String) async throws -> Void
  ) async throws {
    try await KeeperBench.serving { bench in
      var plan = bench.plan
      if let refusedNonces { plan.refusedNonces = refusedNonces }
      if let lifetime { plan.lifetime = lifetime }
      try await Pebble.serving(plan, bench.folder) { pebble in
        try await FrontOfPebble.serving(pebble, bench.folder) { front, directory in
          try await body(bench, front, directory)
        }
      }
    }
  }

  /// `response` with a changed JSON object.
  private static func changing(_ response: Response, _ change: (inout [String: Any]) -> Void) -> Response {
    guard var object = try? JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any] else {
      return response
    }
    change(&object)
    let body = try? JSONSerialization.data(withJSONObject: object)
    return Response(status: response.status, headers: response.headers, body: body.map(Array.init) ?? [])
  }

  // MARK: Listener and storage

  @Test("A certificate that the listener could not present is presented at a later step")
  func servedLater() async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        let root = try await pebble.root(in: bench.folder)
        bench.cannotServe.withLock { $0 = true }
        let keeper = try bench.keeper(pebble.directory)
        for _ in 0..<2 { _ = await keeper.step() }
        #expect(bench.obtained.count == 1)
        bench.cannotServe.withLock { $0 = false }
        _ = await keeper.step()
        await #expect(throws: ClientError.self) { try await bench.connect(trusting: root) }
        bench.clock.advance(by: .seconds(61))
        _ = await keeper.step()
        _ = try await bench.connect(trusting: root)
        #expect(bench.obtained.count == 1)
      }
    }
  }

  @Test("A storage failure is in the status; it is reported when it begins, and every hour")
  func storageFailure() async throws {
    try await KeeperBench.serving { bench in
      let keeper = try bench.keeper("https://localhost:1/dir", storage: CertificateFolder(path: "/proc/acme"))
      let events = { bench.events.withLock(\.self) }
      for _ in 0..<3 { _ = await keeper.step() }
      guard case .storageFailed(let error) = events().first, events().count == 1 else {
        Issue.record("\(events())")
        return
      }
      let status = bench.status.withLock(\.self)
      #expect(status.lastFailure?.code == "storage" && status.lastFailure?.text == "\(error)")
      #expect(status.nextAttempt != nil)
      bench.clock.advance(by: .seconds(3601))
      for _ in 0..<3 { _ = await keeper.step() }
      #expect(events() == [.storageFailed(error), .storageFailed(error)])
    }
  }

  @Test("A private key that every user can read is not used", arguments: [0o604, 0o602])
  func exposed(mode: Int) async throws {
    try await KeeperBench.serving { bench in
      let document = Self.document(.certificate, "https://localhost:1/dir")
      try await bench.storage.write(Array("key".utf8), to: document)
      #expect(try await bench.storage.content(of: document) == Array("key".utf8))
      let file = "\(bench.storage.path)/\(document.name)"
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
      await #expect(throws: ACMEError.self) { try await bench.storage.content(of: document) }
    }
  }

  @Test("A damaged certificate is reported once, and a new one is ordered", arguments: ["truncated", "another key"])
  func damaged(how: String) async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        let first = try bench.keeper(pebble.directory)
        for _ in 0..<2 { _ = await first.step() }
        let issued = try #require(bench.obtained.first)
        let (_, otherKey) = try ChallengeCertificate.make(
          for: "a", digest: [UInt8](repeating: 1, count: 32), at: .now())
        let broken = how == "truncated" ? String(issued.file.prefix(500)) : otherKey + issued.chainPEM
        let document = Self.document(.certificate, pebble.directory)
        try await bench.storage.write(Array(broken.utf8), to: document)
        let damages = {
          bench.events.withLock { events in events.count { if case .damaged = $0 { true } else { false } } }
        }
        // A keeper that has the certificate in memory goes on with it.
        for _ in 0..<3 { _ = await first.step() }
        #expect(damages() == 1 && bench.obtained.count == 1)
        #expect(bench.status.withLock(\.lastFailure)?.text.contains("is damaged") == true)
        // After a restart nothing is left of it.
        let second = try bench.keeper(pebble.directory)
        for _ in 0..<3 { _ = await second.step() }
        #expect(damages() == 2 && bench.obtained.count == 2 && bench.failures == [])
        #expect(bench.status.withLock(\.lastFailure) == nil)
        let settings = CertificateOrderSettings(directory: pebble.directory, names: ["gate.example"])
        #expect(try await CertificateKeeper.stored(settings, in: bench.storage) == bench.obtained.last)
      }
    }
  }

  @Test("A certificate of an earlier version, which named its folder after the first name, is taken over once")
  func formerScope() async throws {
    try await KeeperBench.serving { bench in
      try await Pebble.serving(bench.plan, bench.folder) { pebble in
        let names = ["gate.example", "api.example"]
        let settings = CertificateOrderSettings(directory: pebble.directory, names: names)
        let first = try bench.keeper(pebble.directory, names: names)
        for _ in 0..<2 { _ = await first.step() }
        let issued = try #require(bench.obtained.first)
        let former = try #require(settings.formerScopes.first)
        try FileManager.default.moveItem(
          atPath: "\(bench.storage.path)/\(settings.certificateScope)", toPath: "\(bench.storage.path)/\(former)")
        #expect(try await CertificateKeeper.stored(settings, in: bench.storage) == issued)
        // The names in another order are the same certificate.
        let second = try bench.keeper(pebble.directory, names: names.reversed())
        for _ in 0..<2 { _ = await second.step() }
        #expect(bench.obtained.count == 1 && bench.failures == [])
        #expect(bench.status.withLock(\.certificate) == issued)
        for kind in [CertificateDocument.Kind.certificate, .plan] {
          let now = CertificateDocument(scope: settings.certificateScope, kind: kind)
          #expect(try await bench.storage.content(of: now) != nil)
          #expect(try await bench.storage.content(of: .init(scope: former, kind: kind)) == nil)
          try await bench.storage.write(nil, to: now)
        }
        // It does not return after an operator removes it.
        let third = try bench.keeper(pebble.directory, names: names)
        for _ in 0..<2 { _ = await third.step() }
        #expect(bench.obtained.count == 2)
      }
    }
  }

  // MARK: Texts and sizes

  @Test("Long texts of the server do not make a plan that cannot be read", arguments: ["detail", "URL"])
  func longTexts(place: String) async throws {
    try await withFront { bench, front, directory in
      // One character of 200,000 scalars, and a control character.
      let long = "\u{1B}[2Je" + String(repeating: "\u{301}", count: 200_000)
      front.answers { request in
        guard place == "detail", request.path == "/order-plz" else { return nil }
        return Response(
          status: 403, body: Array(#"{"type":"\#(Self.problem)caa","detail":"\#(long.dropFirst())"}"#.utf8))
      }
      front.changes { request, response in
        guard place == "URL", request.path == "/dir" else { return response }
        return Self.changing(response) { $0["newOrder"] = "https://" + long }
      }
      let keeper = try bench.keeper(directory)
      _ = await keeper.step()
      #expect(bench.failures.map(\.code) == [place == "detail" ? "caa" : "malformed"])
      let plan = try await bench.storage.content(of: Self.document(.plan, directory))
      #expect(try #require(plan).count < 10_000)
      let text = try #require(await keeper.step() > .zero ? bench.status.withLock(\.lastFailure)?.text : nil)
      #expect(text.unicodeScalars.count < 2000 && !text.unicodeScalars.contains("\u{1B}"))
    }
  }

  @Test("A chain that is larger than what a storage keeps is refused before it is written")
  func longChain() async throws {
    try await withFront { bench, front, directory in
      front.changes { request, response in
        guard request.path.hasPrefix("/certZ/"), response.status == 200 else { return response }
        let count = CertificateDocument.longest / response.body.count + 1
        return Response(
          status: 200, headers: response.headers, body: Array(repeatElement(response.body, count: count).joined()))
      }
      _ = try await bench.keeper(directory).step()
      #expect(bench.failures.map(\.code) == ["unusable"], "\(bench.failures)")
      #expect(bench.failures.first.map { "\($0)".contains("too long") } == true)
      #expect(try await bench.storage.content(of: Self.document(.certificate, directory)) == nil)
    }
  }

  // MARK: Orders

  @Test(
    "Authorizations that do not belong to the order are refused, and the order is forgotten",
    arguments: ["too many", "another name", "another type"])
  func foreignAuthorization(how: String) async throws {
    try await withFront { bench, front, directory in
      front.changes { request, response in
        Self.changing(response) { object in
          if how == "too many", let urls = object["authorizations"] as? [String] {
            object["authorizations"] = urls + urls
          }
          if request.path.hasPrefix("/authZ/"), var name = object["identifier"] as? [String: String] {
            if how == "another name" { name["value"] = "other.example" }
            if how == "another type" { name["type"] = "ip" }
            object["identifier"] = name
          }
        }
      }
      _ = try await bench.keeper(directory).step()
      #expect(bench.failures.map(\.code) == ["malformed"], "\(bench.failures)")
      #expect(front.requests.withLock { !$0.contains { $0.hasPrefix("POST /chalZ/") } })
      #expect(try await bench.storage.content(of: Self.document(.order, directory)) == nil)
    }
  }

  @Test(
    "A token of the base64url alphabet is used, whatever its length; another one is refused",
    arguments: [
      (String(repeating: "a", count: 41), true), (String(repeating: "Z", count: 42), true), ("-_-_9", true),
      ("", false), ("a/b", false), ("..", false), ("a.b", false), ("YQ==", false), ("a b", false), ("\u{E4}", false),
      (String(repeating: "a", count: 513), false),
    ])
  func token(_ token: String, isUsed: Bool) async throws {
    try await withFront { bench, front, directory in
      front.changes { request, response in
        guard request.path.hasPrefix("/authZ/") else { return response }
        return Self.changing(response) { object in
          let challenges = object["challenges"] as? [[String: Any]] ?? []
          object["challenges"] = challenges.map { $0.merging(["token": token]) { $1 } }
        }
      }
      _ = try await bench.keeper(directory).step()
      // Pebble expects its own token, so the validation fails if there is one.
      #expect(bench.failures.count == 1)
      #expect((bench.failures.first?.code == "noChallenge") == !isUsed, "\(bench.failures)")
      #expect(front.requests.withLock { $0.contains { $0.hasPrefix("POST /chalZ/") } } == isUsed)
    }
  }

  @Test("An attempt ends after ten minutes, however many names the server delays")
  func deadline() async throws {
    try await withFront { bench, front, directory in
      front.answers { request in
        if request.path.hasPrefix("/authZ/") { bench.clock.advance(by: .seconds(120)) }
        return nil
      }
      let names = (1...8).map { "gate\($0).example" }
      _ = try await bench.keeper(directory, names: names).step()
      #expect(bench.failures == [.unfinished(step: .authorization)], "\(bench.failures)")
    }
  }

  @Test("A finalization whose answer was lost is continued with the state of the order")
  func lostFinalization() async throws {
    try await withFront { bench, front, directory in
      front.changes { request, response in
        guard request.path.hasPrefix("/finalize-order/"), response.status == 200 else { return response }
        // What the server answers to the second one.
        return Response(status: 403, body: Array(#"{"type":"\#(Self.problem)orderNotReady"}"#.utf8))
      }
      _ = try await bench.keeper(directory).step()
      #expect(bench.failures == [] && bench.obtained.count == 1)
    }
  }

  /// How servers refuse an order of an account that they have forgotten.
  static let forgotten: [(status: Int, body: String)] = [
    (500, ""), (500, #"{"type":"\#(problem)serverInternal"}"#), (401, #"{"type":"\#(problem)unauthorized"}"#),
    (401, ""),
    (403, #"{"type":"\#(problem)unauthorized"}"#), (400, #"{"type":"\#(problem)malformed"}"#),
    (400, #"{"type":"\#(problem)accountDoesNotExist"}"#), (404, #"{"type":"\#(problem)accountDoesNotExist"}"#),
  ]

  private static func account(_ directory: String) -> CertificateDocument {
    let settings = CertificateOrderSettings(directory: directory, names: ["gate.example"])
    return CertificateDocument(scope: settings.accountScope, kind: .account)
  }

  /// The requests that make accounts and place orders, in their order.
  private static func accountRequests(_ front: FrontOfPebble) -> [String] {
    front.requests.withLock { $0.filter { $0 == "POST /sign-me-up" || $0 == "POST /order-plz" } }
  }

  @Test(
    "An order refused as by a server that forgot the account is placed again after one newAccount",
    arguments: forgotten)
  func forgottenAccount(status: Int, body: String) async throws {
    try await withFront(refusedNonces: 0) { bench, front, directory in
      _ = try await bench.keeper(directory).step()
      #expect(bench.obtained.count == 1 && bench.failures == [])
      bench.clock.advance(by: .seconds(2600))
      front.requests.withLock { $0 = [] }
      let isForgotten = LockedValue(true)
      front.answers { request in
        if request.path == "/sign-me-up" { isForgotten.withLock { $0 = false } }
        guard request.path == "/order-plz", isForgotten.withLock(\.self) else { return nil }
        return Response(status: status, body: Array(body.utf8))
      }
      let keeper = try bench.keeper(directory)
      for _ in 0..<2 { _ = await keeper.step() }
      #expect(bench.failures == [] && bench.obtained.count == 2)
      let requests = Self.accountRequests(front)
      #expect(requests.count { $0 == "POST /sign-me-up" } == 1, "\(requests)")
      #expect(requests.first == "POST /order-plz" && requests.last == "POST /order-plz", "\(requests)")
    }
  }

  @Test("A server that goes on refusing gets one newAccount and one more order in an attempt", arguments: forgotten)
  func refusedForEver(status: Int, body: String) async throws {
    try await withFront(refusedNonces: 0) { bench, front, directory in
      _ = try await bench.keeper(directory).step()
      try await bench.storage.write(nil, to: Self.document(.certificate, directory))
      bench.clock.advance(by: .seconds(90_000))
      front.requests.withLock { $0 = [] }
      front.answers { request in
        request.path == "/order-plz" ? Response(status: status, body: Array(body.utf8)) : nil
      }
      let keeper = try bench.keeper(directory)
      _ = await keeper.step()
      #expect(bench.failures.count == 1)
      #expect(
        Self.accountRequests(front) == ["POST /order-plz", "POST /sign-me-up", "POST /order-plz"])
    }
  }

  @Test(
    "Another refusal of an order makes no account",
    arguments: [(400, "rejectedIdentifier"), (403, "caa"), (503, "serverInternal"), (400, "badCSR")])
  func refusedOtherwise(status: Int, code: String) async throws {
    try await withFront(refusedNonces: 0) { bench, front, directory in
      _ = try await bench.keeper(directory).step()
      try await bench.storage.write(nil, to: Self.document(.certificate, directory))
      bench.clock.advance(by: .seconds(90_000))
      front.requests.withLock { $0 = [] }
      front.answers { request in
        guard request.path == "/order-plz" else { return nil }
        return Response(status: status, body: Array(#"{"type":"\#(Self.problem)\#(code)"}"#.utf8))
      }
      _ = try await bench.keeper(directory).step()
      #expect(bench.failures.map(\.code) == [code])
      #expect(Self.accountRequests(front) == ["POST /order-plz"])
    }
  }

  @Test("An account that was made in this attempt is not made again", arguments: forgotten)
  func newAccountIsNotMadeAgain(status: Int, body: String) async throws {
    try await withFront(refusedNonces: 0) { bench, front, directory in
      front.answers { request in
        request.path == "/order-plz" ? Response(status: status, body: Array(body.utf8)) : nil
      }
      _ = try await bench.keeper(directory).step()
      #expect(bench.failures.count == 1)
      #expect(Self.accountRequests(front) == ["POST /sign-me-up", "POST /order-plz"])
    }
  }

  @Test("The refusal of the order is reported if newAccount fails, too; a limit of newAccount is kept")
  func refusedAccount() async throws {
    try await withFront(refusedNonces: 0) { bench, front, directory in
      _ = try await bench.keeper(directory).step()
      try await bench.storage.write(nil, to: Self.document(.certificate, directory))
      let answer = LockedValue(Response(status: 500))
      front.answers { request in
        switch request.path {
        case "/order-plz": Response(status: 401, body: Array(#"{"type":"\#(Self.problem)unauthorized"}"#.utf8))
        case "/sign-me-up": answer.withLock(\.self)
        default: nil
        }
      }
      let account = try #require(await bench.storage.content(of: Self.account(directory)))
      bench.clock.advance(by: .seconds(90_000))
      _ = try await bench.keeper(directory).step()
      #expect(bench.failures.map(\.code) == ["unauthorized"])
      answer.withLock { $0 = Response(status: 429, body: Array(#"{"type":"\#(Self.problem)rateLimited"}"#.utf8)) }
      try await bench.storage.write(account, to: Self.account(directory))
      bench.clock.advance(by: .seconds(90_000))
      _ = try await bench.keeper(directory).step()
      #expect(bench.failures.map(\.code) == ["unauthorized", "rateLimited"])
    }
  }

  @Test("A pending order outlasts a refusal that does not say that the server has lost it", arguments: [500, 403])
  func keptOrder(status: Int) async throws {
    try await withFront { bench, front, directory in
      front.answers { $0.path.hasPrefix("/certZ/") ? Response(status: 500) : nil }
      _ = try await bench.keeper(directory).step()
      let order = Self.document(.order, directory)
      let kept = try #require(await bench.storage.content(of: order))
      bench.clock.advance(by: .seconds(61))
      front.answers { request in
        guard request.path.hasPrefix("/my-order/") else { return nil }
        return Response(status: status, body: Array(#"{"type":"\#(Self.problem)serverInternal"}"#.utf8))
      }
      _ = try await bench.keeper(directory).step()
      #expect(bench.failures.map(\.code) == ["unknown", "serverInternal"], "\(bench.failures)")
      #expect(try await bench.storage.content(of: order) == kept)
      bench.clock.advance(by: .seconds(181))
      front.answers { _ in nil }
      _ = try await bench.keeper(directory).step()
      #expect(bench.obtained.count == 1 && front.orders == 1, "\(bench.failures)")
    }
  }

  /// Lets the server answer `body` instead of the state of any order, and an attempt end at once.
  private static func stateOrders(as body: String, _ front: FrontOfPebble, _ bench: KeeperBench) {
    front.answers { request in
      guard request.path.hasPrefix("/my-order/") else { return nil }
      bench.clock.advance(by: .seconds(200))
      return Response(status: 200, body: Array(body.utf8))
    }
  }

  private static func state(_ status: String) -> String {
    #"{"status":"\#(status)","authorizations":[],"finalize":"https://localhost:1/finalize"}"#
  }

  /// States of an order that no attempt can finish.
  static let endless = [state("processing"), state("pending"), "{}"]

  @Test(
    "An order that the server never finishes is continued for a day, and then another one is placed",
    arguments: endless)
  func endlessOrder(body: String) async throws {
    try await withFront(lifetime: 864_000) { bench, front, directory in
      Self.stateOrders(as: body, front, bench)
      for _ in 0..<2 {
        _ = try await bench.keeper(directory).step()
        bench.clock.advance(by: .seconds(300))
      }
      #expect(bench.failures.count == 2 && front.orders == 1, "\(bench.failures)")
      bench.clock.advance(by: .seconds(25 * 3600))
      front.answers { _ in nil }
      _ = try await bench.keeper(directory).step()
      #expect(bench.obtained.count == 1 && bench.failures.count == 2 && front.orders == 2, "\(bench.failures)")
    }
  }

  @Test("A renewal whose order is never finished places another one after a tenth of the certificate's lifetime")
  func endlessRenewal() async throws {
    try await withFront(lifetime: 36_000) { bench, front, directory in
      _ = try await bench.keeper(directory).step()
      bench.clock.advance(by: .seconds(20_000))
      Self.stateOrders(as: Self.state("processing"), front, bench)
      let keeper = try bench.keeper(directory)
      for _ in 0..<2 { _ = await keeper.step() }
      #expect(bench.failures == [.unfinished(step: .finalization)] && front.orders == 2, "\(bench.failures)")
      bench.clock.advance(by: .seconds(3601))
      front.answers { _ in nil }
      for _ in 0..<2 { _ = await keeper.step() }
      #expect(bench.obtained.count == 2 && bench.failures.count == 1 && front.orders == 3, "\(bench.failures)")
    }
  }

  @Test(
    "A pending order without its beginning begins when it is read first; one of the far future is not continued",
    arguments: [(nil, 1), (86_000, 1), (100_000, 2)] as [(Int?, Int)])
  func orderOfAnotherTime(ahead: Int?, orders: Int) async throws {
    try await withFront(lifetime: 864_000) { bench, front, directory in
      Self.stateOrders(as: Self.state("processing"), front, bench)
      _ = try await bench.keeper(directory).step()
      let document = Self.document(.order, directory)
      let content = try #require(await bench.storage.content(of: document))
      var order = try #require(try JSONSerialization.jsonObject(with: Data(content)) as? [String: String])
      #expect(order["begun_at"] != nil)
      bench.clock.advance(by: .seconds(25 * 3600))
      let now = bench.clock.clock.now()
      order["begun_at"] = ahead.map { now.advanced(by: .seconds($0)).description }
      try await bench.storage.write(Array(JSONSerialization.data(withJSONObject: order)), to: document)
      _ = try await bench.keeper(directory).step()
      #expect(bench.failures.count == 2 && front.orders == orders, "\(bench.failures)")
      // A day after that it is too old like any other.
      bench.clock.advance(by: .seconds(25 * 3600))
      front.answers { _ in nil }
      _ = try await bench.keeper(directory).step()
      #expect(front.orders == (ahead == 86_000 ? 1 : orders + 1), "\(bench.failures)")
    }
  }
}
