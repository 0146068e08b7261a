internal import ByteCoding
internal import Commands
internal import Locking
internal import MFAClient
internal import SimulatedPhone

/// Answers the phone's prompts on the terminal. Without a terminal, a prompt that was not planned ends the command.
final class PromptConsole: Sendable {
  private let phone: SimulatedPhone
  private let input = InputLines()
  private let unanswered = LockedValue<Prompt?>(nil)
  private let task = LockedValue<Task<Void, Never>?>(nil)

  init(_ phone: SimulatedPhone, _ planned: [PromptAnswer]) {
    self.phone = phone
    for answer in planned { phone.plan(answer) }
    let updates = phone.promptUpdates()
    let watch = Task { [weak self] in
      for await prompt in updates {
        guard let answer = await self?.answer(to: prompt) else { return }
        phone.answer(prompt.id, with: answer)
      }
    }
    task.withLock { $0 = watch }
  }

  deinit { task.withLock { $0?.cancel() } }

  /// A prompt that got no answer.
  var missedPrompt: Prompt? { unanswered.withLock(\.self) }

  /// Asks for a line, for example a code; `nil` without a terminal.
  func ask(_ question: String) async throws(Failure) -> String? {
    guard StandardInput.isTerminal else { return nil }
    StandardError.write(question + " ")
    return try await input.next().map { String(decoding: $0, as: UTF8.self).filter { !$0.isWhitespace } }
  }

  private func answer(to prompt: Prompt) async -> PromptAnswer {
    while StandardInput.isTerminal {
      StandardError.write("📱 \(Self.title(of: prompt)): \(TerminalText.printable(prompt.reason))\n")
      let line = try? await ask("   approve, decline, fail or passcode?")
      guard let line else { break }
      if let planned = PlannedAnswers(argument: line.isEmpty ? "approve" : line), let answer = planned.answers.first {
        return answer
      }
    }
    unanswered.withLock { $0 = prompt }
    return .interrupt(.notInteractive)
  }

  static func title(of prompt: Prompt) -> String {
    switch prompt.kind {
    case .faceIDPermission: "Allow the app to use Face ID?"
    case .biometry(let type): type.name ?? "Biometry"
    case .passcode: "Passcode"
    case .securityKey: "Touch the security key"
    }
  }
}
