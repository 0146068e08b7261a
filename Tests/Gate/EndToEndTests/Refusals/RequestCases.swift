import TestSupport
import Transport

extension RefusalCase {
  static let requests: [RefusalCase] = routing + heads + bodies + handshakes

  private static let routing: [RefusalCase] = [
    RefusalCase("an unknown path below the gate's own", 404, "not_found", "path", "There is nothing at this path") {
      try await $0.send("GET", "/attest/elsewhere")
    },
    RefusalCase(
      "a challenge by POST", 405, "method_not_allowed", "method", "Use GET here", fields: ["Allow": "GET"]
    ) { try await $0.send("POST", "/attest/challenge") },
    RefusalCase(
      "a registration by GET", 405, "method_not_allowed", "method", "Use POST here", fields: ["Allow": "POST"]
    ) { try await $0.send("GET", "/attest/register") },
    RefusalCase(
      "an ordinary request", 426, "upgrade_required", "upgrade",
      "Only WebSockets are served here: send an opening handshake", fields: ["Upgrade": "websocket"]
    ) { try await $0.send("GET", "/") },
    RefusalCase(
      "a page of another host", 403, "origin_refused", "origin", "Pages of another host may not open a WebSocket here"
    ) { try await $0.refusal(of: HeaderFields().with("Origin", "https://elsewhere.example")) },
    RefusalCase(
      "a page with the origin null", 403, "origin_refused", "origin",
      "Pages of another host may not open a WebSocket here"
    ) { try await $0.refusal(of: HeaderFields().with("Origin", "null")) },
  ]

  /// A request that only a client without any checks sends.
  private static func raw(
    _ description: String, _ status: Int, _ code: String, _ step: String, _ text: String,
    fields: [String: String] = [:], _ bytes: String
  ) -> RefusalCase {
    RefusalCase(description, status, code, step, text, knowsAccept: false, fields: fields) {
      try await RawClient($0.gate).exchange(Array(bytes.utf8)).response
    }
  }

  private static let heads: [RefusalCase] = [
    raw(
      "no host", 400, "malformed_head", "head_grammar", "Malformed request: the Host field is missing",
      "GET / HTTP/1.1\r\n\r\n"),
    raw(
      "a folded field", 400, "malformed_head", "head_grammar",
      "Malformed request: a field line begins with white space",
      "GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n"),
    raw(
      "17 KiB", 431, "head_too_large", "head_size", "Request header too large: the head is too long",
      "GET / HTTP/1.1\r\nHost: localhost\r\nA: \(String(repeating: "a", count: 17 << 10))\r\n\r\n"),
    raw(
      "101 fields", 431, "head_too_large", "head_size", "Request header too large: the head has too many fields",
      "GET / HTTP/1.1\r\nHost: localhost\r\n\(String(repeating: "A: b\r\n", count: 100))\r\n"),
    raw(
      "half a head", 408, "request_timeout", "request_time", "The request did not arrive in time",
      "GET / HTTP/1.1\r\nHost: localhost\r\n"),
  ]

  private static let bodies: [RefusalCase] = [
    raw(
      "64 KiB and a byte", 413, "body_too_large", "body_size", "The body may have at most 65536 bytes",
      "POST /attest/register HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n"),
    raw(
      "two lengths", 400, "malformed_body", "body_framing",
      "Malformed body: the Content-Length field is repeated",
      "POST /attest/register HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}"),
  ]

  private static func handshake(_ fields: String) -> String {
    "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\(fields)\r\n\r\n"
  }

  private static let handshakes: [RefusalCase] = [
    raw(
      "another protocol", 426, "upgrade_required", "upgrade",
      "Only WebSockets are served here: send an opening handshake", handshake("Upgrade: h2c")),
    raw(
      "another protocol through a proxy", 403, "upgrade_refused", "verify_upgrade",
      "No other upgrade than to WebSocket may pass",
      "GET /attest/verify HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nUpgrade: h2c\r\n\r\n"),
    raw(
      "no key", 400, "malformed_upgrade", "upgrade_grammar",
      "Malformed opening handshake: Sec-WebSocket-Key is not one base64 text of 16 bytes",
      handshake("Upgrade: websocket\r\nSec-WebSocket-Version: 13")),
    raw(
      "version 8", 426, "websocket_version", "websocket_version", "Only WebSocket version 13 is supported",
      fields: ["Sec-WebSocket-Version": "13"],
      handshake("Upgrade: websocket\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")),
  ]
}

extension RefusalCase {
  /// Cases that depend on the gate's configuration, store or upstream.
  static let environment: [RefusalCase] = [
    RefusalCase(
      "a registration at a gate without apps", 503, "not_configured", "not_configured",
      "Server not configured for App Attest", configuration: GateConfiguration(hasApp: false)
    ) {
      let device = try TestDevice()
      let nonce = try await $0.challenge()
      return try await $0.register(device, attestation: device.attestation(over: nonce), nonce: nonce)
    },
    RefusalCase(
      "an upgrade at a gate without apps", 503, "not_configured", "not_configured",
      "Server not configured for App Attest", configuration: GateConfiguration(hasApp: false)
    ) { try await $0.refusal(of: TestDevice().headers(over: $0.challenge())) },
    RefusalCase(
      "a store whose file cannot be created", 503, "store_unavailable", "store_unreachable",
      "The key store is unavailable: try again later",
      configuration: GateConfiguration(store: String(repeating: "x", count: 300)),
      fields: ["Retry-After": "5"]
    ) { try await $0.send("GET", "/attest/challenge") },
    RefusalCase(
      "an upgrade while the store's queue is full", 503, "overloaded", "store_overloaded",
      "The gate is overloaded: try again later", configuration: GateConfiguration(mostWaiting: 1),
      fields: ["Retry-After": "1"]
    ) {
      let crowd = try await Crowd(of: 4, at: $0)
      guard let first = try await crowd.upgradeWhileLocked().compactMap(\.refusal).first else { throw NotRefused() }
      return first
    },
    RefusalCase(
      "no process listens at the upstream", 502, "upstream_unavailable", "upstream_connect",
      "The service behind this gate cannot be reached: try again later"
    ) { try await $0.refusal(of: $0.registeredDevice().headers(over: $0.challenge())) },
    RefusalCase(
      "a debug build with another subject", 403, "certificate_refused", "certificate_subject",
      "This client certificate's subject is not accepted",
      configuration: GateConfiguration(clientAuthority: "tls-ca.pem", allowedSubjects: ["CN=Another Client"])
    ) {
      let files = try ClientFiles(commonName: "Debug Client", in: $0.gate.folder)
      let debugBuild = try Visitor(
        $0.gate, accept: $0.accept, certificate: files.certificate, key: files.key)
      return try await debugBuild.refusal()
    },
  ]
}
