internal import AppAttest
internal import AttestGate
internal import Transport

/// The opening handshake that an upstream gets.
struct UpstreamHead {
  let request: Request
  let peer: Peer
  let admission: Admission
  let hygiene: HeaderHygiene

  /// From request line to empty line. Target, query, `Host` and the handshake's own fields are the client's, and so is
  /// what `HeaderHygiene` lets through; the rest is the gate's word.
  var bytes: [UInt8] {
    var head: [UInt8] = []
    head.reserveCapacity(1024)
    head += "\(request.method) \(request.target) HTTP/1.1\r\n".utf8
    for fields in [hygiene.cleaned(request.headers), ownFields] {
      for field in fields.fields {
        head += field.name.utf8
        head += ": ".utf8
        head += field.value.utf8
        head += "\r\n".utf8
      }
    }
    head += "\r\n".utf8
    return head
  }

  private var ownFields: HeaderFields {
    var fields = HeaderFields()
    fields.append("Connection", "Upgrade")
    fields.append("Upgrade", "websocket")
    appendIdentity(to: &fields)
    fields.append("X-Request-Id", request.id)
    fields.append("X-Forwarded-For", forwardedFor)
    fields.append("X-Forwarded-Proto", "https")
    if let host = request.headers.first("Host") { fields.append("X-Forwarded-Host", host) }
    return fields
  }

  private func appendIdentity(to fields: inout HeaderFields) {
    fields.append("X-Attest-Method", admission.principal.method)
    guard case .device(let device) = admission.principal else { return }
    fields.append("X-Attest-Key-Id", KeyHash(of: device.keyID).text)
    fields.append("X-Attest-App", device.appID.text)
  }

  // A Unix socket has no address that the field could hold; RFC 7239 section 6.2 has a word for that.
  private var forwardedFor: String {
    switch peer.address {
    case .ipv4, .ipv6: peer.address.host
    case .unix: "unknown"
    }
  }
}
