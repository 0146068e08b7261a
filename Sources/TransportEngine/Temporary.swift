internal import Transport
final class Endpoint { func finished() {} }
extension EventLoop {
  func openBridge(_ session: SessionRef) {}
  func openConversation(_ session: SessionRef, _ exchange: Exchange, _ conversation: any WebSocketSession) {}
  func endpointReadable(_ session: SessionRef, _ side: Side) {}
  func settleEndpoint(_ session: SessionRef) {}
  func closeEndpoint(_ session: SessionRef, _ code: CloseCode, reason: String) {}
  func endpointTimer(_ session: SessionRef) {}
}
