internal import ByteCoding
internal import COpenSSL
internal import Transport
enum WebSocketKey {
  static func accept(for key: String) -> String {
    var digest = [UInt8](repeating: 0, count: 20)
    let text = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
    SHA1(text, text.count, &digest)
    return Base64.encode(digest)
  }
}
enum ResponseWriter {
  static func encode(_ response: Response, closes: Bool, omitsBody: Bool, date: String) -> [UInt8] {
    var text = "HTTP/1.1 \(response.status) X\r\nDate: \(date)\r\nContent-Length: \(response.body.count)\r\n"
    for field in response.headers.fields { text += "\(field.name): \(field.value)\r\n" }
    if closes { text += "Connection: close\r\n" }
    return Array((text + "\r\n").utf8) + (omitsBody ? [] : response.body)
  }
  static func switchingProtocols(accept: String, fields: HeaderFields, from upstream: HeaderFields) -> [UInt8] {
    var text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    for field in upstream.fields { text += "\(field.name): \(field.value)\r\n" }
    for field in fields.fields { text += "\(field.name): \(field.value)\r\n" }
    return Array((text + "\r\n").utf8)
  }
}
final class Endpoint { func finished() {} }
extension EventLoop {
  func openBridge(_ session: SessionRef) {}
  func openConversation(_ session: SessionRef, _ exchange: Exchange, _ conversation: any WebSocketSession) {}
  func endpointReadable(_ session: SessionRef, _ side: Side) {}
  func settleEndpoint(_ session: SessionRef) {}
  func closeEndpoint(_ session: SessionRef, _ code: CloseCode, reason: String) {}
  func endpointTimer(_ session: SessionRef) {}
}
