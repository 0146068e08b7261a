internal import ConfigurationEngine

/// The definition of every setting of the backend.
enum Keys {
  private static let counts = 1...1_000_000

  static let version = Key(
    "version", .integer(1...1), default: "1",
    "The version of this format.")
  static let listen = Key(
    "listen", .place, default: "127.0.0.1:8080",
    "Where to listen: ADDRESS:PORT on loopback, or unix:/path.")
  static let database = Key(
    "database", .database, isRequired: true,
    "sqlite:///path, postgres://user@host/database, or ephemeral.")
  static let databasePassword = Key(
    "database_password_file", .file, credential: "database.password", example: "db.password",
    "File with the password for PostgreSQL on its first line. It is read for each new connection.")
  static let keysFile = Key(
    "keys_file", .file, credential: "keys", example: "keys.json",
    "JSON file with the key-encryption keys, the current key first. `mfa-backend keys make` creates it.")
  static let gateKeys = Key(
    "gate.jwks", .keys, isRequired: true, example: "https://gate.example.com:6200/.well-known/sallyport/jwks.json",
    "The gate's keys: a file, an https URL, or an http URL on loopback.")
  static let gateCA = Key(
    "gate.ca_file", .file, example: "gate-ca.pem",
    "PEM file with the roots that verify the gate's URL.")
  static let gateIssuer = Key(
    "gate.issuer", .text, isRequired: true, example: "sallyport",
    "The issuer of the gate's identities: its `identity.issuer`.")
  static let gateAudience = Key(
    "gate.audience", .text, isRequired: true, example: "sallyport-upstream",
    "The audience of the gate's identities: the `routes[].audience` of this route, or `identity.audience`.")
  static let smsSink = Key(
    "sms.sink", .word("log"),
    "`log` writes codes to the log instead of sending them, for development.")
  static let smsURL = Key(
    "sms.url", .smsServer, default: "https://api.twilio.com",
    "A server with the API of api.twilio.com.")
  static let smsAccount = Key(
    "sms.account", .text, example: "AC0123456789",
    "The account at the SMS provider.")
  static let smsToken = Key(
    "sms.token_file", .file, credential: "sms.token", example: "sms.token",
    "File with the token of the account.")
  static let smsSender = Key(
    "sms.from", .text, example: "+15550100",
    "The phone number that sends the SMS, for Twilio's API and for {{from}}.")
  static let smsRequest = Key(
    "sms.http.url", .smsTemplateURL, example: "https://sms.example.com/v1/messages",
    "The server of another API than Twilio's, asked by one request for each SMS. Path and query may contain {{to}}, "
      + "{{to_digits}}, {{text}} and {{from}}.")
  static let smsMethod = Key(
    "sms.http.method", .word("POST", "GET"), default: "POST",
    "The method of the request.")
  static let smsHeaders = Key(
    "sms.http.headers[]", .requestField, example: "Authorization: Bearer {{token}}",
    "A header field. {{token}} is the first line of sms.http.token_file; {{basic}} is the same in base64, for "
      + "`USER:PASSWORD`.")
  static let smsBody = Key(
    "sms.http.body", .requestBody, example: "{\"to\": \"{{to}}\", \"text\": \"{{text}}\"}",
    "The body, with placeholders.")
  static let smsEscape = Key(
    "sms.http.escape", .word("json", "form"),
    "How values become part of the body: as content of JSON strings, or percent-encoded. Required with a body.")
  static let smsStatus = Key(
    "sms.http.status", .statusCodes, default: "200-299",
    "The status codes of an accepted SMS.")
  static let smsRequestToken = Key(
    "sms.http.token_file", .file, credential: "sms.http.token", example: "sms.token",
    "File with the credentials. It is read for each SMS.")
  static let smsCA = Key(
    "sms.http.ca_file", .file, example: "sms-ca.pem",
    "PEM file with the roots that verify the server.")
  static let mailServer = Key(
    "email.smtp", .server,
    "The mail server, HOST:PORT or [ADDRESS]:PORT. TLS is required.")
  static let mailTLS = Key(
    "email.tls", .word("starttls", "implicit"),
    "Whether TLS begins by STARTTLS or with the connection; implicit on port 465 if not set, otherwise starttls.")
  static let mailGreeting = Key(
    "email.ehlo", .greeting, example: "gate.example.com",
    "The name that EHLO tells the mail server; the domain of email.from if not set.")
  static let mailCA = Key(
    "email.ca_file", .file, example: "mail-ca.pem",
    "PEM file with the roots that verify the mail server.")
  static let mailUser = Key(
    "email.user", .text, example: "mfa",
    "The user at the mail server.")
  static let mailPassword = Key(
    "email.password_file", .file, credential: "email.password", example: "smtp.password",
    "File with the password of the user.")
  static let mailToken = Key(
    "email.token_file", .file, credential: "email.token", example: "smtp.token",
    "File with an access token of the user for XOAUTH2, instead of a password. It is read for each mail.")
  static let mailSender = Key(
    "email.from", .mailAddress,
    "The sender address of e-mail.")
  static let apnsKey = Key(
    "push.apns.key_file", .file, credential: "push.apns.key", example: "AuthKey_ABC123DEFG.p8",
    "File with the key of the developer account for Apple Push Notification service. No push notifications to Apple's "
      + "devices if not set.")
  static let apnsKeyID = Key(
    "push.apns.key_id", .developerID, example: "ABC123DEFG",
    "The id of the key.")
  static let apnsTeamID = Key(
    "push.apns.team_id", .developerID, example: "DEF123GHIJ",
    "The id of the team that has the developer account.")
  static let apnsEndpoint = Key(
    "push.apns.endpoint", .pushServer, example: "https://apns.example.com",
    "Another server for all devices. Apple's servers if not set, by the environment of the device's attested key.")
  static let apnsCA = Key(
    "push.apns.ca_file", .file, example: "push-ca.pem",
    "PEM file with the roots that verify the server.")
  static let fcmAccount = Key(
    "push.fcm.service_account_file", .file, credential: "push.fcm.account", example: "service-account.json",
    "JSON file with the service account of the Firebase project. No push notifications to Android devices if not set.")
  static let fcmEndpoint = Key(
    "push.fcm.endpoint", .pushServer, default: "https://fcm.googleapis.com",
    "The server of Firebase Cloud Messaging.")
  static let fcmCA = Key(
    "push.fcm.ca_file", .file, example: "push-ca.pem",
    "PEM file with the roots that verify the server and the token server of the account.")
  static let pushesNotices = Key(
    "push.notices", .onOrOff, default: "off",
    "Whether notices about the security of an account are push notifications as well, at most ten in an hour per user.")
  static let templates = Key(
    "messages.templates", .folder,
    "Folder with templates of the texts of SMS, e-mail and push notifications, by language: code.sms.txt, "
      + "code.email.de.txt, sign-in.push.txt. The built-in English texts if not set.")
  static let domain = Key(
    "domain", .text, default: "localhost",
    "The domain for which phones autofill codes.")
  static let issuer = Key(
    "issuer", .serviceName, default: "Sallyport",
    "The name of the service in authenticator apps and security keys.")
  static let relyingParty = Key(
    "webauthn.rp_id", .relyingParty,
    "The domain of security keys. Without it, security keys are off. Never change it: the keys are bound to it.")
  static let origins = Key(
    "webauthn.origins", .names("web origins and Android apps"),
    example: "https://example.com, https://login.example.com",
    "Where keys may be used: web origins and Android apps, separated by commas; https://RP_ID if not set.")
  static let userVerification = Key(
    "webauthn.user_verification", .word("required", "preferred", "discouraged"), default: "preferred",
    "Whether a key must verify its user by PIN or biometry.")
  static let provider = Key(
    "oidc.issuer", .provider,
    "The identity provider whose ID tokens are a first factor: an https URL, or http on loopback. Off if not set.")
  static let providerAudience = Key(
    "oidc.audience", .names("client ids"), example: "app-ios, app-android",
    "The app's client ids at the identity provider, separated by commas.")
  static let trustedAudiences = Key(
    "oidc.trusted_audiences", .names("audiences"), example: "PROJECT-ID",
    "Audiences that an ID token may have in addition to a client id of the app, separated by commas: a project, a "
      + "sibling client.")
  static let clockSkew = Key(
    "oidc.clock_skew", .duration(0...900_000), default: "5m",
    "The difference between the clocks of the identity provider and of the backend that is allowed, at most 15m.")
  static let providerCA = Key(
    "oidc.ca_file", .file, example: "provider-ca.pem",
    "PEM file with the roots that verify the identity provider.")
  static let secondFactorFor = Key(
    "policy.second_factor_for", .word("nobody", "admins", "everyone"), default: "nobody",
    "The users who must set up a second factor.")
  static let gracePeriod = Key(
    "policy.grace_period", .time, default: "7d",
    "How long a user may go without a required second factor. The time starts at the latest of: the creation of the "
      + "account; the day on which the user became an admin (for admins); the first start under this "
      + "`second_factor_for`.")
  static let recoveryWait = Key(
    "policy.recovery_wait", .recoveryWait, default: "1d",
    "The wait before a recovery by backup code can enrol a device; off for no such recovery.")
  static let stepUpScore = Key(
    "policy.step_up_score", .countOrOff(1...100), default: "off",
    "The risk, 1 to 100, from which a trusted device must give the second factor; or off.")
  static let trustNetworks = Key(
    "policy.trust_networks", .word("any", "known"), default: "any",
    "Where trust replaces the second factor: known means only networks that the device was used from.")
  static let deviceUnlock = Key(
    "policy.device_unlock", .word("any", "biometric"), default: "any",
    "The unlock that a device key needs to enrol and sign in: biometric means biometry, as the app reports it.")
  static let hardwareKeys = Key(
    "policy.hardware_keys", .onOrOff, default: "off",
    "Whether you guarantee that your app keeps device keys in hardware that requires the user's unlock. Tokens then "
      + "contain hwk and aal2 for them, otherwise pop and aal1.")
  static let biometricGate = Key(
    "policy.biometric_gate", .onOrOff, default: "on",
    "Whether a client may show its biometric gate before the user enters the code.")
  static let mostDevices = Key(
    "policy.most_devices", .integer(1...100), default: "10",
    "Maximum number of devices per account.")
  static let messages = Key(
    "limits.messages_per_hour", .integer(counts), default: "3000",
    "Messages per hour to all users together, by SMS and by e-mail each.")
  static let messagesOfAddress = Key(
    "limits.per_ip.messages_per_hour", .numberLimit(counts), default: "30",
    "Messages per hour requested from one client address, by SMS and by e-mail each; off if all clients share one.")
  static let codeRequestsOfAddress = Key(
    "limits.per_ip.code_requests", .rateLimit(counts), default: "100/50s",
    "Requests from one client address that send or guess codes: a burst, refilled over the time; or off.")
  static let messagesOfKey = Key(
    "limits.per_key.messages_per_hour", .integer(counts), default: "30",
    "Messages per hour requested by one app instance, by SMS and by e-mail each.")
  static let accountsOfKey = Key(
    "limits.per_key.accounts", .integer(counts), default: "10",
    "Accounts that one app instance may create.")
  static let codeRequestsOfKey = Key(
    "limits.per_key.code_requests", .rate(counts), default: "20/40s",
    "Requests from one app instance that send or guess codes.")
  static let requestsOfKey = Key(
    "limits.per_key.requests", .rate(counts), default: "120/6s",
    "Other requests from one app instance.")
  static let auditFile = Key(
    "audit.file", .file, example: "/var/log/mfa/audit.jsonl",
    "File that gets each new entry of the history as one line of JSON. A reload opens it again. Off if not set.")
  static let auditFileSize = Key(
    "audit.file_size", .sizeOrOff, default: "off",
    "The size from which the file is renamed to FILE.1, an older one to FILE.2, and so on; off for another program "
      + "that rotates.")
  static let auditFilesKept = Key(
    "audit.files_kept", .integer(1...1000), default: "10",
    "How many renamed files are kept.")
  static let auditSyslog = Key(
    "audit.syslog", .syslog, example: "tls://logs.example.com:6514",
    "Receiver of each new entry as a syslog message (RFC 5424): a local socket, UDP, TCP with octet counting, or TLS. "
      + "Off if not set.")
  static let auditFacility = Key(
    "audit.syslog_facility",
    .word(
      "authpriv", "auth", "daemon", "user", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
      "local7"), default: "authpriv",
    "The facility of the messages.")
  static let auditCA = Key(
    "audit.syslog_ca_file", .file, example: "logs-ca.pem",
    "PEM file with the roots that verify the receiver of tls.")
  static let webhookURL = Key(
    "webhooks.url", .webhookReceiver, example: "https://hooks.example.com/mfa",
    "The server that hears of new entries of the history, by signed messages (Standard Webhooks). Off if not set.")
  static let webhookSecret = Key(
    "webhooks.secret_file", .file, example: "webhooks.secret",
    "A file with the secrets that sign the messages, one `whsec_…` on each line. A changed file counts at once.")
  static let webhookEvents = Key(
    "webhooks.events[]", .auditEvent, example: "device.enrolled",
    "The events that the server hears of, by their names in the history. By default all.")
  static let webhookCA = Key(
    "webhooks.ca_file", .file, example: "receiver-ca.pem",
    "PEM file with the roots that verify the server, instead of the system's.")
  static let adminListen = Key(
    "admin.listen", .adminSocket,
    "The Unix socket of the operator commands, unix:/path, with mode 0600. It answers /livez, /readyz, /metrics and "
      + "/status too. Off if not set.")
  static let metricsListen = Key(
    "metrics.listen", .place, example: "127.0.0.1:9465",
    "Address of /metrics, /livez and /readyz: ADDRESS:PORT on loopback. Off if not set.")
  static let unreadyDelay = Key(
    "shutdown.unready_delay", .time, default: "0s",
    "How long the backend reports that it is not ready, and still accepts requests, before it closes sockets.")
  static let drainTimeout = Key(
    "shutdown.drain_timeout", .time, default: "8s",
    "How long requests and messages have to finish before the backend exits. Container tools wait ten seconds.")
  static let logLevel = Key(
    "log.level", .word("debug", "info", "notice", "warning", "error"), default: "info",
    "The lowest level that is logged.")
  static let logsStatements = Key(
    "log.sql", .onOrOff, default: "off",
    "Whether SQL statements are logged at debug, without values.")
}
