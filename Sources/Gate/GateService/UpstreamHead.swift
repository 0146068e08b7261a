internal import AttestGate
internal import Transport

/// The head that an upstream gets: an opening handshake, or an ordinary request.
struct UpstreamHead {
  let request: Request
  let peer: Peer
  let admission: Admission
  let identity: UpstreamIdentity
  let sanitizer: HeaderSanitizer

  /// An opening handshake, from request line to empty line.
  var openingHandshake: [UInt8] { lines + "\r\n".utf8 }

  /// From request line to the last field; nothing frames a body. Target, query, `Host` and the handshake's own fields
  /// are the client's, and so is what `HeaderSanitizer` lets through; the rest is the gate's word.
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
    // Only where it is what let the client in: beside an assertion it says nothing about the device.
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

  // The trace begins here and is called as the request is, so that logs and traces find one another. Sampled, or
  // upstreams that follow their parents would never record anything.
  private var traceparent: String { "00-\(request.id)-\(request.id.suffix(16))-01" }

  // A Unix socket has no address that the field could hold; RFC 7239 section 6.2 has a word for that.
  private var forwardedFor: String {
    switch peer.address {
    case .ipv4, .ipv6: peer.address.host
    case .unix: "unknown"
    }
  }
}

/// Lines of a head in the making.
private struct HeadBytes {
  private(set) var bytes: [UInt8] = []

  init() { bytes.reserveCapacity(2048) }

  mutating func line(_ parts: String...) {
    for var part in parts { part.withUTF8 { bytes.append(contentsOf: $0) } }
    bytes.append(UInt8(ascii: "\r"))
    bytes.append(UInt8(ascii: "\n"))
  }
}
