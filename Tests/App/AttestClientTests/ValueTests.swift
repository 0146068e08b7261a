import AttestClient
import ByteCoding
import Foundation
import Wire
import Testing

@Suite("Messages of the gate")
struct GateMessageTests {
  @Test("A challenge is a hex nonce with an optional expiry time")
  func challenge() throws {
    let nonce = String(repeating: "0a", count: 32)
    let full = try #require(Challenge(body: Array(#"{"nonce":"\#(nonce)","expires":"1700000000123"}"#.utf8)))
    #expect(full.nonce == nonce)
    #expect(full.bytes == [UInt8](repeating: 10, count: 32))
    #expect(full.expires == Timestamp(milliseconds: 1_700_000_000_123))
    #expect(Challenge(body: Array(#"{"nonce":"\#(nonce)","more":true}"#.utf8))?.expires == nil)
  }

  @Test(
    "Other responses are not challenges",
    arguments: [
      "", "{}", "[]", #"{"nonce":7}"#, #"{"nonce":""}"#, #"{"nonce":"0a0"}"#,
      #"{"nonce":"zz0a0b0c0d0e0f101112131415161718"}"#,
      #"{"nonce":"0a0b0c0d0e0f10111213141516171"}"#, #"{"nonce":"+a0b0c0d0e0f101112131415161718"}"#,
    ])
  func noChallenge(body: String) {
    #expect(Challenge(body: Array(body.utf8)) == nil)
  }

  @Test("A refusal is read from status, header and text")
  func refusal() {
    let response = HTTPResponse(
      status: 403, headers: [HTTPField("x-attest-error", "rp_id_mismatch"), HTTPField("X-REQUEST-ID", "7f")],
      body: Array("rpIdHash does not match bundleId\r\n".utf8))
    let refusal = GateRefusal(response)
    #expect(refusal.code?.rawValue == "rp_id_mismatch")
    #expect(refusal.text == "rpIdHash does not match bundleId")
    #expect(refusal.requestID == "7f")
    #expect("\(refusal)" == "403 rp_id_mismatch: rpIdHash does not match bundleId")
  }

  @Test(
    "A refusal has the wait of its Retry-After in seconds, at most a day",
    arguments: [
      ("7", 7), ("0", 0), ("86400", 86_400), ("86401", 86_400), ("9999999999", 86_400), ("99999999999", nil), ("", nil),
      ("-1", nil), ("+7", nil), ("1.5", nil), ("٧", nil), ("Wed, 21 Oct 2026 07:28:00 GMT", nil),
    ])
  func retryAfter(_ text: String, _ seconds: Int?) {
    let response = HTTPResponse(status: 429, headers: [HTTPField("retry-after", text)])
    #expect(GateRefusal(response).retryAfter == seconds.map { .seconds($0) })
    #expect(GateRefusal(HTTPResponse(status: 429)).retryAfter == nil)
  }

  @Test("An error's localized description is its text")
  func localized() {
    let refusal = GateRefusal(status: 403, code: .keyRevoked, text: "no")
    let errors: [(any Error, String)] = [
      (AttestError.missingNonce, "the gate's challenge has no nonce"), (refusal, "403 key_revoked: no"),
      (AttestError.keyRevoked(refusal), "this device's key was revoked: 403 key_revoked: no"),
      (UpgradeError.refused(refusal), "the gate refused: 403 key_revoked: no"),
      (AttestError.transport(.lost("x")), "the gate's answer was lost: x"),
      (TransportError.lost("x"), "the server's answer was lost: x"),
      (KeyServiceError.invalidKey, "\(KeyServiceError.invalidKey)"),
      (KeyStoreError.unreadable("x"), "\(KeyStoreError.unreadable("x"))"),
    ]
    for (error, text) in errors { #expect(error.localizedDescription == text) }
  }

  @Test("The text of a refusal cannot control a terminal")
  func unsafeRefusal() {
    let text = "a\u{1B}]0;b\u{7}\u{9B}2Jc\nd\u{202E}e"
    let refusal = GateRefusal(HTTPResponse(status: 403, body: Array(text.utf8)))
    #expect(refusal.text == "a\u{FFFD}]0;b\u{FFFD}\u{FFFD}2Jc\u{FFFD}d\u{FFFD}e")
    let named = GateRefusal(
      HTTPResponse(
        status: 403, headers: [HTTPField("X-Attest-Error", "\u{9B}2J"), HTTPField("X-Request-Id", "\u{2066}")]))
    #expect(named.codeText == "\u{FFFD}2J" && named.requestID == "\u{FFFD}")
  }

  @Test("A refusal of a server that is not a gate is read with a bounded length")
  func foreignRefusal() {
    let refusal = GateRefusal(HTTPResponse(status: 502, body: [UInt8](repeating: 0xFF, count: 100_000)))
    #expect(refusal.code == nil)
    #expect(refusal.text.count <= 500)
    #expect("\(GateRefusal(HTTPResponse(status: 502)))" == "502: no reason given")
  }

  @Test("An unknown code is kept as text, and its status determines the advice")
  func unknownCode() {
    let expected: [(Int, GateRefusalCode.Advice)] = [
      (400, .fixRequest), (408, .retryLater), (418, .fixRequest), (429, .retryLater), (503, .retryLater), (302, .stop),
    ]
    for (status, advice) in expected {
      let answer = HTTPResponse(status: status, headers: [HTTPField(GateRefusal.codeHeader, "newer_code")])
      let refusal = GateRefusal(answer)
      #expect(refusal.code == nil && refusal.codeText == "newer_code" && refusal.advice == advice)
      #expect("\(refusal)" == "\(status) newer_code: no reason given")
    }
  }

  /// What an app does about each code, whatever the status says. Apps in the field rely on it.
  private static let advice: [(GateRefusalCode.Advice, [GateRefusalCode])] = [
    (
      .fixRequest,
      [
        .malformedHead, .malformedBody, .malformedUpgrade, .malformedJSON, .malformedForm, .malformedHeader,
        .malformedValue, .malformedAttestation, .malformedAssertion, .upgradeRefused, .notFound, .methodNotAllowed,
        .bodyTooLarge, .headTooLarge, .upgradeRequired, .webSocketVersion, .nonceMismatch, .keyIDMismatch,
        .noCredentials, .dpopMalformed, .dpopRefused,
      ]
    ),
    (.freshChallenge, [.nonceInvalid, .nonceExpired, .nonceUsed, .counterReplayed]),
    (.newKey, [.certExpired, .receiptRefused, .keyExists, .keyRefused, .riskOutdated]),
    (
      .retryLater,
      [
        .requestTimeout, .rateLimited, .upstreamUnavailable, .notConfigured, .tokensUnavailable, .storeUnavailable,
        .statusListUnavailable, .riskUnknown, .clockWrong, .overloaded,
      ]
    ),
    (
      .stop,
      [
        .originRefused, .chainUntrusted, .rpIDMismatch, .environmentMismatch, .categoryRefused, .appRefused,
        .deviceRefused, .attestationRevoked, .certificateRefused, .keyRevoked, .riskTooHigh, .audienceRefused,
      ]
    ),
  ]

  @Test("E-027 each code has one advice, which does not change with the status", arguments: GateRefusalCode.allCases)
  func advice(of code: GateRefusalCode) {
    #expect(Self.advice.filter { $0.1.contains(code) }.map(\.0) == [GateRefusal(status: 500, code: code).advice])
  }
}

@Suite("The gate's address")
struct AddressTests {
  @Test(
    "An https URL or the wss URL of a socket is accepted",
    arguments: [
      ("https://gate.example:6200", "https://gate.example:6200/attest/challenge"),
      ("https://gate.example/", "https://gate.example/attest/challenge"),
      ("https://gate.example/edge/", "https://gate.example/edge/attest/challenge"),
      ("wss://gate.example:6200/chat?room=1", "https://gate.example:6200/attest/challenge"),
      ("WSS://[::1]:6200", "https://[::1]:6200/attest/challenge"),
    ])
  func usable(text: String, endpoint: String) async throws {
    let gate = ScriptedGate()
    let url = try #require(URL(string: text))
    let session = try AttestSession(gate: url, keys: RecordingKeyService(), store: FaultyKeyIDStore(), http: gate)
    _ = try await session.fetchChallenge()
    #expect(gate.requests.map(\.url.absoluteString) == [endpoint])
  }

  @Test(
    "Plaintext and ambiguous URLs are refused",
    arguments: [
      "http://gate.example", "ws://gate.example", "gate.example", "file:///etc", "https:///path",
      "https://a@gate.example",
      "https://gate.example/#x", "https://gate.example?x=1",
    ])
  func unusable(text: String) throws {
    let url = try #require(URL(string: text))
    #expect(throws: AttestError.unusableAddress(text)) {
      try AttestSession(gate: url, keys: RecordingKeyService(), store: FaultyKeyIDStore(), http: ScriptedGate())
    }
  }

  @Test("A socket is of the gate if it has its host and port, and the scheme wss")
  func sockets() throws {
    let gate = try #require(URL(string: "https://gate.example:6200/edge").flatMap(GateAddress.init))
    for text in ["wss://gate.example:6200", "wss://gate.example:6200/chat?room=1", "WSS://GATE.example:6200/"] {
      #expect(gate.serves(socket: try #require(URL(string: text))), "\(text)")
    }
    for text in [
      "wss://other.example:6200/", "wss://gate.example/", "ws://gate.example:6200/", "https://gate.example:6200/",
      "wss://a@gate.example:6200/", "wss:///chat",
    ] {
      #expect(!gate.serves(socket: try #require(URL(string: text))), "\(text)")
    }
    let secure = try #require(URL(string: "https://gate.example").flatMap(GateAddress.init))
    #expect(secure.serves(socket: try #require(URL(string: "wss://gate.example:443/"))))
  }
}

@Suite("The key record in a file")
struct FileKeyIDStoreTests {
  private func inFolder(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.path + "/record-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try body(folder)
  }

  @Test(
    "A record is loaded as it was saved",
    arguments: [
      KeyRecord(), KeyRecord(keyID: "a/b+c="), KeyRecord(renewedAt: Timestamp(seconds: 1_700_000_000, nanoseconds: 5)),
      KeyRecord(keyID: "k", renewedAt: Timestamp(seconds: 0)),
    ])
  func roundTrip(record: KeyRecord) throws {
    try inFolder { folder in
      let store = FileKeyIDStore(path: "\(folder)/record.json")
      #expect(try store.load() == KeyRecord())
      try store.save(KeyRecord(keyID: "older"))
      try store.save(record)
      #expect(try store.load() == record)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["record.json"])
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder)/record.json")
      #expect(attributes[.posixPermissions] as? Int == 0o600)
    }
  }

  @Test(
    "A damaged record is refused", arguments: ["", "{", "[]", #"{"renewedAt":"yesterday"}"#, #"{"keyId":5}"#])
  func damaged(content: String) throws {
    try inFolder { folder in
      try Data(content.utf8).write(to: URL(fileURLWithPath: "\(folder)/record.json"))
      #expect(throws: KeyStoreError.self) { try FileKeyIDStore(path: "\(folder)/record.json").load() }
    }
  }

  @Test("A save to a missing folder fails and leaves no file")
  func noFolder() throws {
    try inFolder { folder in
      let store = FileKeyIDStore(path: "\(folder)/missing/record.json")
      #expect(throws: KeyStoreError.self) { try store.save(KeyRecord(keyID: "k")) }
      let left = try FileManager.default.contentsOfDirectory(atPath: folder)
      #expect(left.isEmpty)
    }
  }
}
