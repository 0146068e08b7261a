internal import Transport

/// What a server sends before the connection is a WebSocket: answers to requests.
extension ClientChannel {
  func readAnswer(hasEnded: Bool, in loop: EventLoop) {
    if case .everything = goal {
      readEverything(in: loop)
      return
    }
    if answer == nil { parseHead(in: loop) }
    defer { refuseUnasked(in: loop) }
    guard var pending = answer else { return }
    // A second reference to the body would copy all of it for each reception.
    answer = nil
    do throws(BodyError) {
      let taken = try inbox.withUnsafeBufferPointer { bytes throws(BodyError) in try pending.body.feed(bytes) }
      inbox.removeFirst(taken)
      if hasEnded {
        // Without close_notify, anyone on the path could have ended the stream; a reset ends it anywhere.
        guard socket.endedInOrder || pending.body.isComplete else { throw .endedEarly }
        try pending.body.connectionEnded()
      }
      guard pending.body.isComplete else {
        answer = pending
        return
      }
      answered(pending.head, pending.body.body, in: loop)
    } catch {
      end(fault(error), in: loop)
    }
  }

  /// Reads raw bytes until the server has switched protocols or sent more than 1 MiB.
  private func readEverything(in loop: EventLoop) {
    let text = String(decoding: inbox.prefix(64 << 10), as: UTF8.self)
    let status = text.dropFirst(8)
    let hasSwitched =
      text.hasPrefix("HTTP/1.") && (status.hasPrefix(" 101 ") || status.hasPrefix(" 101\r\n"))
      && text.contains("\r\n\r\n")
    if hasSwitched || inbox.count > 1 << 20 { end(.lost("the raw exchange is complete"), in: loop) }
  }

  /// Closes the connection if bytes arrive while no operation waits: they must not become the
  /// response to the next request.
  private func refuseUnasked(in loop: EventLoop) {
    if phase == .ready && goal == nil && !inbox.isEmpty {
      end(.malformed("the server sent a response without a request"), in: loop)
    }
  }

  private func parseHead(in loop: EventLoop) {
    while goal != nil {
      switch inbox.withUnsafeBufferPointer({ ResponseHead.parse($0) }) {
      case .incomplete: return
      case .fault(let fault):
        end(.malformed(fault.rawValue), in: loop)
        return
      case .head(let head, let length):
        inbox.removeFirst(length)
        if head.status == 101 {
          upgraded(head, in: loop)
          return
        }
        if head.status < 200 { continue }
        do throws(BodyError) {
          answer = (head, try BodyReader(framing(of: head), limit: longestBody, extras: .dropped))
        } catch {
          end(fault(error), in: loop)
        }
        return
      }
    }
  }

  private func fault(_ error: BodyError) -> ClientError {
    switch error {
    case .tooLarge(let limit): .tooLong(limit: limit)
    case .malformed: .malformed("the response body is malformed")
    case .endedEarly: .lost(socket.failure ?? "the connection was closed inside the response")
    }
  }

  /// Returns the framing of a response. A response to HEAD has no body, whatever its fields say
  /// (RFC 9112 section 6.3), and the caller may want none.
  private func framing(of head: ResponseHead) -> BodyFraming {
    switch goal {
    case .response(to: "HEAD", _), .head: .none
    case .response, .upgrade, .connection, .everything, nil: head.framing
    }
  }

  private func answered(_ head: ResponseHead, _ body: [UInt8], in loop: EventLoop) {
    let response = Response(status: head.status, headers: head.headers, body: body, closes: head.wantsClose)
    let goal = self.goal
    self.goal = nil
    clearDeadline(in: loop)
    if head.wantsClose { end(.lost("the server closed the connection"), in: loop) }
    switch goal {
    case .response(_, let done): done(.success(response))
    case .head(let done):
      end(.lost("the rest of the response is not read"), in: loop)
      done(.success(response))
    case .upgrade(_, let done): done(.failure(.refused(response)))
    case .connection, .everything, nil: break
    }
  }

  private func upgraded(_ head: ResponseHead, in loop: EventLoop) {
    guard case .upgrade(let handshake, let done) = goal else {
      end(.malformed("a 101 response without an upgrade request"), in: loop)
      return
    }
    do throws(UpgradeAnswerError) {
      _ = try UpgradeAnswer(
        head, accept: HandshakeKey.accept(for: handshake.key), subprotocols: handshake.subprotocols, extensions: [])
    } catch {
      end(.malformed(error.rawValue), in: loop)
      return
    }
    goal = nil
    clearDeadline(in: loop)
    phase = .webSocket
    webSocket = ClientSocketState(maxMessage: handshake.maxMessage)
    done(.success(Response(status: 101, headers: head.headers)))
    let early = inbox
    inbox = []
    early.withUnsafeBytes { socketReceived($0, in: loop) }
  }
}
