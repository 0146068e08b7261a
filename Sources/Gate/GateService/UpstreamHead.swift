internal import AttestGate
internal import Telemetry
internal import Transport

/// The head of a request to an upstream: an opening handshake or an ordinary request.
struct UpstreamHead {
  let request: Request
  let peer: Peer
  let admission: Admission
  let identity: UpstreamIdentity
  let sanitizer: HeaderSanitizer
  /// The trace that the gate exports; `nil` without telemetry.
  let trace: RequestTrace?

  /// An opening handshake, from the request line to the empty line.
  var openingHandshake: [UInt8] { lines + "\r\n".utf8 }

  /// The lines from the request line to the last field, without fields that frame a body.
  ///
  /// Target, query, `Host` and the fields of the handshake are the client's, and so are the fields that
  /// `HeaderSanitizer` keeps. The gate sets all others.
  var lines: [UInt8] {
    var head = HeadBytes()
    head.line(request.method, " ", request.target, " HTTP/1.1")
    for field in sanitizer.cleaned(request.headers).fields { head.line(field.name, ": ", field.value) }
    for field in ownFields.fields { head.line(field.name, ": ", field.value) }
    return head.bytes
  }

  private var ownFields: HeaderFields {
    var fields = HeaderFields()
    if request.upgrade != nil {
      fields.append("Connection", "Upgrade")
      fields.append("Upgrade", "websocket")
    }
    identity.append(to: &fields)
    // Sent only if the certificate admitted the client: next to an assertion it would say nothing about the device.
    if case .certificate = admission.principal, let certificate = peer.verifiedCertificate {
      fields.append("Client-Cert", certificate.fieldValue)
    }
    fields.append("X-Request-Id", request.id)
    fields.append("traceparent", traceparent)
    fields.append("X-Forwarded-For", forwardedFor)
    fields.append("X-Forwarded-Proto", "https")
    if let host = request.headers.first("Host") { fields.append("X-Forwarded-Host", host) }
    return fields
  }

  // Without telemetry, the trace begins here and uses the request id, so that logs and traces can be matched. The
  // sampled flag is set, since upstreams that follow the parent's flag would otherwise record no traces.
  private var traceparent: String {
    trace?.upstreamContext.traceparent ?? "00-\(request.id)-\(request.id.suffix(16))-01"
  }

  // A Unix socket has no address for this field. RFC 7239 section 6.2 defines `unknown` for that case.
  private var forwardedFor: String {
    switch peer.address {
    case .ipv4, .ipv6: peer.address.host
    case .unix: "unknown"
    }
  }
}

/// Collects the lines of a head.
private struct HeadBytes {
  private(set) var bytes: [UInt8] = []

  init() { bytes.reserveCapacity(2048) }

  mutating func line(_ parts: String...) {
    for var part in parts { part.withUTF8 { bytes.append(contentsOf: $0) } }
    bytes.append(UInt8(ascii: "\r"))
    bytes.append(UInt8(ascii: "\n"))
  }
}
