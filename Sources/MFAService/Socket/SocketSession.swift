internal import Logging
internal import MFADomain
internal import NIOCore
internal import NIOWebSocket
internal import ServiceLifecycle

/// One socket, from its opening to its close.
struct SocketSession {
  let channel: NIOAsyncChannel<WebSocketFrame, WebSocketFrame>
  let caller: Caller
  let service: SocketService

  func run() async {
    do {
      try await channel.executeThenClose { inbound, outbound in
        let close = await converse(inbound, outbound)
        if let close { try? await outbound.write(Self.frame(closing: close)) }
        outbound.finish()
      }
    } catch {
      service.logger.debug("socket ended", metadata: ["request_id": "\(caller.requestID)", "reason": "\(error)"])
    }
  }

  private func converse(
    _ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>, _ outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>
  ) async -> SocketClose? {
    let (changes, changed) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let listening = Listening(bell: service.premises.bell) { changed.yield() }
    let conversation = SocketConversation(
      caller: caller, registry: service.registry, tokens: service.tokens, notices: Notices(service.premises),
      limits: service.limits, clock: service.premises.clock,
      send: { try await outbound.write(Self.frame(text: $0)) },
      sessionDidChange: { listening.listen(to: $0.userID) })
    if let session = caller.session { listening.listen(to: session.userID) }
    defer { listening.leave() }
    return await withTaskGroup(of: SocketClose?.self) { group in
      group.addTask { await read(inbound, outbound, conversation) }
      group.addTask { await watch(changes, conversation) }
      group.addTask {
        // Other processes write to the same database, and ring no bell here.
        while !Task.isCancelled {
          try? await Task.sleep(for: service.limits.watchInterval)
          changed.yield()
        }
        return nil
      }
      group.addTask {
        do { try await gracefulShutdown() } catch { return nil }
        return .goingAway
      }
      let close = await group.next() ?? nil
      group.cancelAll()
      return close
    }
  }

  /// Tells notices as they come, until the session ends.
  private func watch(_ changes: AsyncStream<Void>, _ conversation: SocketConversation) async -> SocketClose? {
    for await _ in changes {
      do {
        guard try await conversation.tellNotices() else { return .sessionEnded }
      } catch is StoreFault {
        // The next change, or the next interval, tries again.
      } catch {
        return nil
      }
    }
    return nil
  }

  private func read(
    _ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>,
    _ outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>, _ conversation: SocketConversation
  ) async -> SocketClose? {
    await withTaskGroup(of: Void.self) { requests in
      do {
        for try await frame in inbound {
          if conversation.isTooFast() { return .tooFast }
          switch frame.opcode {
          case .text:
            let text = Array(frame.unmaskedData.readableBytesView)
            guard conversation.begin() else {
              try await conversation.refuseAsBusy(text)
              continue
            }
            requests.addTask {
              try? await conversation.answer(text)
              conversation.end()
            }
          case .ping:
            try await outbound.write(WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData))
          case .pong: break
          case .connectionClose:
            try await outbound.write(Self.frame(echoing: frame))
            return nil
          default: return .notText
          }
        }
        return nil
      } catch {
        return SocketClose(faultOfFrames: error)
      }
    }
  }

  private static func frame(text: [UInt8]) -> WebSocketFrame {
    WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(bytes: text))
  }

  private static func frame(closing close: SocketClose) -> WebSocketFrame {
    var data = ByteBuffer()
    data.writeInteger(close.code)
    data.writeString(close.reason)
    return WebSocketFrame(fin: true, opcode: .connectionClose, data: data)
  }

  /// RFC 6455, section 5.5.1: the code that came goes back.
  private static func frame(echoing frame: WebSocketFrame) -> WebSocketFrame {
    WebSocketFrame(
      fin: true, opcode: .connectionClose, data: ByteBuffer(bytes: frame.unmaskedData.readableBytesView.prefix(2)))
  }
}
