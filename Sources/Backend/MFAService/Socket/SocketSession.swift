internal import Logging
internal import MFADomain
internal import NIOCore
internal import NIOWebSocket
internal import ServiceLifecycle

/// One open socket, until its close.
struct SocketSession {
  let channel: NIOAsyncChannel<WebSocketFrame, WebSocketFrame>
  let caller: Caller
  let service: SocketService

  func run() async {
    do {
      try await channel.executeThenClose { inbound, outbound in
        let backlog = OutboundQueue(limit: service.limits.largestBacklog)
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask { try await backlog.write(to: outbound) }
          let (close, deadline) = await converse(inbound, backlog)
          defer { deadline.cancel() }
          try await say(close, backlog, in: &group)
        }
      }
    } catch {
      service.logger.debug("socket failed", metadata: ["request_id": "\(caller.requestID)", "reason": "\(error)"])
    }
  }

  /// Writes the waiting frames and the close frame. Returns when the kernel has accepted all of it, or fails when the
  /// deadline closes the channel. If the client was too slow, waiting frames are dropped.
  private func say(
    _ close: SocketClose?, _ backlog: OutboundQueue, in writing: inout ThrowingTaskGroup<Void, any Error>
  ) async throws {
    if close == .tooSlow {
      service.logger.notice(
        "socket closed: client reads too slowly", metadata: ["request_id": "\(caller.requestID)"])
      writing.cancelAll()
    }
    let isOpen = backlog.finish()
    do { try await writing.waitForAll() } catch  where close == .tooSlow {}
    // Nothing follows the answer to the client's own Close.
    guard let close, isOpen else { return }
    try await channel.channel.writeAndFlush(Self.frame(closing: close))
  }

  /// Closes the channel after a time limit, so that a client cannot keep a closing socket by not reading.
  private func closeLater() -> Scheduled<Void> {
    let (channel, logger, requestID) = (channel.channel, service.logger, caller.requestID)
    return channel.eventLoop.scheduleTask(in: TimeAmount(service.limits.closeTime)) {
      logger.notice("socket cut off: client does not read", metadata: ["request_id": "\(requestID)"])
      channel.close(promise: nil)
    }
  }

  /// Serves the socket until either side closes it. Then starts the time limit for the remaining frames.
  private func converse(
    _ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>, _ backlog: OutboundQueue
  ) async -> (SocketClose?, deadline: Scheduled<Void>) {
    let (changes, changed) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let listening = NoticeSubscription(hub: service.live.current.context.hub) { changed.yield() }
    let conversation = SocketConversation(
      caller: caller, live: service.live, limits: service.limits,
      send: { try backlog.add(Self.frame(text: $0)) },
      sessionDidChange: { listening.listen(to: $0.userID) })
    if let session = caller.session { listening.listen(to: session.userID) }
    defer { listening.leave() }
    return await withTaskGroup(of: SocketClose?.self) { group in
      group.addTask { await read(inbound, backlog, conversation) }
      group.addTask {
        await backlog.overflow()
        return .tooSlow
      }
      group.addTask { await watch(changes, conversation) }
      group.addTask {
        // Other processes write to the same database without ringing the bell of this process.
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
      let deadline = closeLater()
      group.cancelAll()
      return (close, deadline)
    }
  }

  /// Sends notices until the session ends.
  private func watch(_ changes: AsyncStream<Void>, _ conversation: SocketConversation) async -> SocketClose? {
    for await _ in changes {
      do {
        guard try await conversation.tellNotices() else {
          // The request that ended the session is answered first.
          await conversation.finishAnswers(within: service.limits.answerTime)
          return .sessionEnded
        }
      } catch is OutboundQueue.Full {
        return .tooSlow
      } catch is MFAStoreError {
        // The next change or the next interval tries again.
      } catch {
        return nil
      }
    }
    return nil
  }

  private func read(
    _ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>, _ backlog: OutboundQueue,
    _ conversation: SocketConversation
  ) async -> SocketClose? {
    // A discarding group keeps no results. Other groups would collect them on a socket that is open for days.
    await withDiscardingTaskGroup { requests in
      do {
        for try await frame in inbound {
          if conversation.isTooFast() { return .tooFast }
          switch frame.opcode {
          case .text:
            let text = Array(frame.unmaskedData.readableBytesView)
            guard String(validating: text, as: UTF8.self) != nil else { return .notUTF8 }
            guard conversation.begin() else {
              try conversation.refuseAsBusy(text)
              continue
            }
            // That of its arrival: the request after it may attach another one before this one runs.
            let session = conversation.session
            requests.addTask {
              try? await conversation.answer(text, in: session)
              conversation.end()
            }
          case .ping:
            try backlog.add(WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData))
          case .pong: break
          case .connectionClose:
            // No frame may follow (RFC 6455, section 5.5.1), so the answers of running requests are dropped.
            try backlog.add(Self.frame(echoing: frame), isLast: true)
            return nil
          default: return .notText
          }
        }
        return nil
      } catch is OutboundQueue.Full {
        return .tooSlow
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

  /// The close frame of the answer has the code of the client (RFC 6455, section 5.5.1).
  private static func frame(echoing frame: WebSocketFrame) -> WebSocketFrame {
    WebSocketFrame(
      fin: true, opcode: .connectionClose, data: ByteBuffer(bytes: frame.unmaskedData.readableBytesView.prefix(2)))
  }
}
