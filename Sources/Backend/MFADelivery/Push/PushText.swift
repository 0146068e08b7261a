internal import MFADomain

/// The title and the text of a push notification: by its template, or the built-in English ones.
struct PushText: Sendable, Hashable {
  let title: String
  let body: String

  private init(title: String, body: String) {
    self.title = title
    self.body = body
  }

  init(_ notification: PushNotification, domain: String, templates: MessageTemplates) {
    guard let text = templates.text(of: notification, domain: domain) else {
      self = Self.builtIn(notification.content)
      return
    }
    (title, body) = text
  }

  static func builtIn(_ content: PushNotification.Content) -> PushText {
    switch content {
    case .signIn: PushText(title: "Is this you?", body: "A sign-in waits for your approval. Open the app to answer.")
    case .notice:
      PushText(title: "Check your account", body: "The security of your account has changed. Open the app to see how.")
    }
  }
}

/// The names by which an app recognizes a push notification.
enum PushName {
  /// The category of a sign-in that waits for approval (`UNNotificationCategory`, and the action of Android's intent).
  static let signIn = "SIGN_IN_APPROVAL"
  static let notice = "ACCOUNT_NOTICE"

  /// The largest payload of both services, in bytes.
  static let largestPayload = 4096
}

extension PushNotification.Content {
  var category: String {
    switch self {
    case .signIn: PushName.signIn
    case .notice: PushName.notice
    }
  }

  /// The member of the payload that the app reads.
  var member: (name: String, value: String) {
    switch self {
    case .signIn(let push): ("push", push.text)
    case .notice(let sequence): ("notice", String(sequence))
    }
  }

  /// What a later notification replaces an earlier one by: two pushes of one sign-in are one, and the last notice stands
  /// for all.
  var collapseID: String {
    switch self {
    case .signIn(let push): push.text
    case .notice: "notice"
    }
  }
}
