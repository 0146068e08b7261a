internal import Commands
internal import TransportEngine

extension Attack {
  /// Fields in the gate's name that come back in its answers, where another proxy would copy them.
  static let identities: [Attack] = [
    spoof("X-Attest-Key-Id"), spoof("X-Attest-App"), spoof("X-Attest-Method"), spoof("X-Attest-Assertion"),
    spoof("x-attest-key-id"), spoof("X_Attest_Key_Id"), spoof("X-Request-Id"), spoof("Remote-User"),
    Attack(.identity, "credentials in the name of the proxy's request", [401, 403]) { prober throws(Failure) in
      try await prober.verify(["X-Original-URL: /attest/challenge", "X-Forwarded-Uri: /attest/challenge"])
    },
    Attack(.identity, "Connection with the gate's fields at /attest/verify", [401, 403]) { prober throws(Failure) in
      try await prober.verify(["Connection: X-Attest-Key-Id, X-Attest-Assertion", "X-Attest-Key-Id: mallory"])
    },
    tunnel("h2c", ["Upgrade: h2c"]),
    tunnel("h2c with its settings", ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", settings]),
    tunnel("the settings of h2c alone", [settings]),
    tunnel("h2c after websocket", ["Upgrade: websocket, h2c"]),
    tunnel("h2c in a second field", ["Upgrade: websocket", "Upgrade: h2c"]),
    tunnel("TLS", ["Upgrade: TLS/1.3"]),
  ]

  private static let settings = "HTTP2-Settings: AAMAAABkAAQAAP__"

  /// An upgrade that a proxy would pass on, and after which it would no longer see the client's requests. The code is
  /// compared: a gate that allows the upgrade refuses this request too, because it has no credentials.
  private static func tunnel(_ name: String, _ fields: [String]) -> Attack {
    Attack(.identity, "an upgrade to \(name) at /attest/verify", [403], code: "upgrade_refused") {
      prober throws(Failure) in
      try await prober.verify(fields)
    }
  }

  private static func spoof(_ name: String) -> Attack {
    Attack(.identity, "\(name) at /attest/verify", [401, 403]) { prober throws(Failure) in
      try await prober.verify(["\(name): mallory"])
    }
  }
}

extension Prober {
  /// Returns the gate's answer to another proxy about a request with these fields and no proof.
  func verify(_ fields: [String]) async throws(Failure) -> Reply {
    let answer = try await exchange(
      Self.head(["GET /attest/verify HTTP/1.1", "Host: \(address.hostField)", "Connection: close"] + fields))
    var reply = Reply(answer)
    if String(decoding: answer.bytes, as: UTF8.self).contains("mallory") { reply.leak = "the client's word comes back" }
    return reply
  }
}
