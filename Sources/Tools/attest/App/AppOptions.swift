internal import ArgumentParser
internal import SimulatedPhone

/// The options of commands that act as an app with a second factor.
struct AppOptions: ParsableArguments {
  @OptionGroup var global: GlobalOptions

  @Argument(help: "The gate, like wss://localhost:6200/.")
  var url: String

  @Option(help: ArgumentHelp("The account. Remembered after the enrolment.", valueName: "name"))
  var user: String?

  @Option(help: "How requests are sent: rest or socket.")
  var by = LabWay.rest

  @Option(
    help: ArgumentHelp(
      "How the owner answers the phone's prompts, in order: approve, decline, fail, passcode; without it the terminal asks.",
      valueName: "answers"))
  var answers: PlannedAnswers?
}

/// The answers of `--answers`, separated by commas.
struct PlannedAnswers: ExpressibleByArgument {
  let answers: [PromptAnswer]

  init?(argument: String) {
    var answers: [PromptAnswer] = []
    for word in argument.split(separator: ",", omittingEmptySubsequences: false) {
      switch word {
      case "approve": answers.append(.approve)
      case "decline": answers.append(.decline)
      case "fail": answers.append(.fail)
      case "passcode": answers.append(.usePasscode)
      default: return nil
      }
    }
    self.answers = answers
  }
}

/// How a key is unlocked, as an option.
enum UnlockChoice: String, CaseIterable, ExpressibleByArgument {
  case biometrics
  case passcode
  case sms
}
