/**
 * Every setting from outside: name, default, what is allowed, meaning. `tollgate serve --help` is
 * printed from this table and a test holds the README's table against it.
 */
import {
  addressRanges,
  dnsServers,
  drachtioUrls,
  edgeProxyRules,
  exitCodes,
  extensionHeaders,
  hepServer,
  hostAndPort,
  hostList,
  hostName,
  hooksFile,
  hostNames,
  httpUrl,
  mailAddress,
  key32,
  type SettingKind,
  listenAddresses,
  instanceName,
  instanceSipUri,
  oneOf,
  postgresUrl,
  relayAddresses,
  text,
  userName,
  webOrigins,
  wholeNumber,
  zeroOr,
  smtpServer,
} from './setting-kinds.ts'

export interface Setting<T> {
  readonly name: string
  readonly allowed: string
  readonly meaning: string
  /** As text, as it would be set; undefined: unset has a meaning of its own. */
  readonly defaultText: string | undefined
  /** The text of help for a default that has no text of its own. */
  readonly whenUnset: string
  /** Never shown, in errors neither. */
  readonly isSecret: boolean
  /** Undefined: the text is not allowed. */
  read(value: string | undefined): { readonly value: T } | undefined
}

const secret = text(1, 200)
const pemFile = text(1, 1_000)

/** All settings, in the order of `--help`. */
export const settings = {
  sipListen: withDefault(
    'SIP_LISTEN',
    listenAddresses,
    'udp/0.0.0.0:5060,tcp/0.0.0.0:5060',
    'The addresses that serve SIP. Default ports: 5060; 5061 for tls; 80 for ws; 443 for wss.',
  ),
  sipConnectionsPerAddress: withDefault(
    'SIP_CONNECTIONS_PER_ADDRESS',
    wholeNumber(1, 10_000),
    '256',
    'How many connections one address (IPv6: one /64 network) may have to each SIP listener.',
  ),
  sipAdvertisedHost: unset(
    'SIP_ADVERTISED_HOST',
    hostName,
    'the bound address',
    'The public address behind NAT. Via and Contact headers name it.',
  ),
  sipHostNames: unset(
    'SIP_HOST_NAMES',
    hostNames,
    'none',
    'Further host names of this SBC. A phone that dials a number at one of them dials this SBC.',
  ),
  foreignDomains: unset(
    'FOREIGN_DOMAINS',
    hostNames,
    'none: such calls get 404',
    'Domains of others that phones may call. DNS finds them. The dialled number sets the price.',
  ),
  sipTlsCert: unset(
    'SIP_TLS_CERT',
    pemFile,
    '–',
    'The PEM file of the certificate for tls and wss. It may hold the chain. A change, and ' +
      'SIGHUP, reload it.',
  ),
  sipTlsKey: unset('SIP_TLS_KEY', pemFile, '–', 'The PEM file of the private key.'),
  sipTlsChain: unset(
    'SIP_TLS_CHAIN',
    pemFile,
    '–',
    'The PEM file of the intermediate certificates.',
  ),
  sipTlsCa: unset(
    'SIP_TLS_CA',
    pemFile,
    'those that Node.js ships',
    'The PEM file of the certificate authorities that are trusted.',
  ),
  sipTlsMinVersion: withDefault(
    'SIP_TLS_MIN_VERSION',
    oneOf('1.2', '1.3'),
    '1.2',
    'The oldest version of TLS that is accepted.',
  ),
  sipTlsClientCertificates: withDefault(
    'SIP_TLS_CLIENT_CERTIFICATES',
    oneOf('off', 'optional', 'required'),
    'off',
    'Whether peers must show a certificate to a tls listener.',
  ),
  sipTlsVerify: withDefault(
    'SIP_TLS_VERIFY',
    oneOf('on', 'off'),
    'on',
    'Whether nodes and gateways must show a valid certificate when they are called by TLS.',
  ),
  sipWsOrigins: unset(
    'SIP_WS_ORIGINS',
    webOrigins,
    'all',
    'The web pages whose phones may connect by ws and wss.',
  ),
  sipDnsServers: unset(
    'SIP_DNS_SERVERS',
    dnsServers,
    "the system's",
    'The DNS servers that find SIP hosts. When it is unset, the hosts file counts first.',
  ),
  apiListen: withDefault(
    'API_LISTEN',
    hostAndPort,
    '127.0.0.1:8080',
    'The address of the control API and the console.',
  ),
  apiTlsCert: unset(
    'API_TLS_CERT',
    pemFile,
    'plain HTTP',
    'The PEM file of the certificate of the API and the console. It may hold the chain. A ' +
      'change, and SIGHUP, reload it.',
  ),
  apiTlsKey: unset('API_TLS_KEY', pemFile, '–', 'The PEM file of its private key.'),
  publicUrl: unset(
    'PUBLIC_URL',
    httpUrl,
    'webhooks have no links',
    'The address at which people reach the API and the console. Links in webhooks begin with ' +
      'it; single sign-on needs it.',
  ),
  edgeListen: withDefault(
    'EDGE_LISTEN',
    hostAndPort,
    '127.0.0.1:8081',
    'The address of the customer edge.',
  ),
  edgeTlsCert: unset(
    'EDGE_TLS_CERT',
    pemFile,
    'plain HTTP',
    'The PEM file of the certificate of the customer edge.',
  ),
  edgeTlsKey: unset('EDGE_TLS_KEY', pemFile, '–', 'The PEM file of its private key.'),
  httpConnectionsPerAddress: withDefault(
    'HTTP_CONNECTIONS_PER_ADDRESS',
    wholeNumber(1, 4_096),
    '256',
    'How many connections one address (IPv6: one /64 network) may have to the API, and to ' +
      'the edge. More get 503.',
  ),
  trustedProxies: withDefault(
    'TRUSTED_PROXIES',
    addressRanges,
    'none',
    'Proxies whose X-Forwarded-For and Forwarded headers are believed. They have no limit ' +
      'of connections.',
  ),
  mcpAllowedHosts: unset(
    'MCP_ALLOWED_HOSTS',
    hostNames,
    'addresses and localhost',
    'Further host names that may reach /mcp, such as that of a proxy.',
  ),
  databasePath: withDefault(
    'DATABASE_PATH',
    text(1, 1_000),
    'data/tollgate.db',
    'The SQLite file. With DATABASE_URL, the place of the journal of calls.',
  ),
  databaseUrl: hidden(
    unset(
      'DATABASE_URL',
      postgresUrl,
      'SQLite, at DATABASE_PATH',
      'The PostgreSQL database. Of several hosts, the one that accepts writes is used.',
    ),
  ),
  databaseAwaySeconds: withDefault(
    'DATABASE_AWAY_SECONDS',
    wholeNumber(5, 600, 's'),
    '10',
    'How long this node pays for calls from its shares of wallets without PostgreSQL.',
  ),
  journalKeepSeconds: withDefault(
    'JOURNAL_KEEP_SECONDS',
    zeroOr(1, 3_600, 's'),
    '60',
    'How long the journal keeps stored calls, which a standby that takes over may lack. 0: ' +
      'not at all.',
  ),
  instanceName: unset(
    'NODE_NAME',
    instanceName,
    'the host name',
    'The name of this process among those of one database. Each needs its own.',
  ),
  instanceUrl: unset(
    'NODE_URL',
    httpUrl,
    'API_LISTEN, with https:// where the API has a certificate',
    'The address at which the other nodes reach the API of this one.',
  ),
  instanceSipUri: unset(
    'NODE_SIP_URI',
    instanceSipUri,
    'the first of SIP_LISTEN',
    'The address to which the other nodes send calls for phones of this one.',
  ),
  drachtioUrl: hidden(
    unset(
      'DRACHTIO_URL',
      drachtioUrls,
      'the embedded server',
      'Real drachtio-servers, which replace the embedded one. Several take turns.',
    ),
  ),
  drachtioListen: unset(
    'DRACHTIO_LISTEN',
    hostAndPort,
    'no',
    'The address at which other drachtio applications connect to the embedded server. ' +
      'Needs DRACHTIO_SECRET.',
  ),
  drachtioSecret: hidden(
    unset('DRACHTIO_SECRET', secret, '–', 'The secret that those applications must present.'),
  ),
  trustedSources: withDefault(
    'TRUSTED_SOURCES',
    addressRanges,
    '127.0.0.0/8,::1/128',
    'Sources whose From names the payer: they may spend any wallet. List only programs of ' +
      'this machine.',
  ),
  edgeProxies: withDefault(
    'EDGE_PROXIES',
    edgeProxyRules,
    'none',
    'Proxies that authenticate users of some tenants. From names customers of these ' +
      'tenants, and Path is trusted.',
  ),
  tenantNetworks: withDefault(
    'TENANT_NETWORKS',
    addressRanges,
    'none',
    "Networks of this machine (loopback, link-local, private) to which a tenant's agents, nodes " +
      'and gateways may lead.',
  ),
  ocsUrl: unset(
    'OCS_URL',
    httpUrl,
    'charging in this process',
    'An external charging system. It must answer GET {url}/api/ocs/authorize and POST ' +
      '{url}/api/ocs/cdr.',
  ),
  ocsToken: hidden(unset('OCS_TOKEN', secret, '–', 'The bearer token for OCS_URL.')),
  ocsTimeoutMs: withDefault(
    'OCS_TIMEOUT_MS',
    wholeNumber(50, 60_000, 'ms'),
    '1000',
    'How long OCS_URL may take to answer.',
  ),
  ocsFailMode: withDefault(
    'OCS_FAIL_MODE',
    oneOf('closed', 'open'),
    'closed',
    'What happens when charging (OCS_URL, or PostgreSQL) does not answer. closed: 503. ' +
      'open: the call passes.',
  ),
  unknownCaller: withDefault(
    'UNKNOWN_CALLER',
    oneOf('deny', 'allow'),
    'deny',
    'Whether a caller without a customer may call. With allow, such calls cost nothing.',
  ),
  exitCodes: unset(
    'EXIT_CODES',
    exitCodes,
    'none; spend guards take 00, 0011, 011 and 810 for such codes',
    'What callers dial in place of +, such as 00. A number that begins with one counts as ' +
      'the number with + for prices, blocks and routes.',
  ),
  nodeTimeoutMs: withDefault(
    'NODE_TIMEOUT_MS',
    wholeNumber(100, 60_000, 'ms'),
    '1500',
    'How long a destination may be silent before the next one is tried.',
  ),
  nodeProgressTimeoutMs: withDefault(
    'NODE_PROGRESS_TIMEOUT_MS',
    wholeNumber(100, 60_000, 'ms'),
    '6000',
    'With DRACHTIO_URL: how long a node that answers OPTIONS may take to ring before the ' +
      'next one is tried.',
  ),
  ringTimeoutSeconds: withDefault(
    'RING_TIMEOUT_SECONDS',
    wholeNumber(1, 3_600, 's'),
    '180',
    'How long a call may ring. Then it ends with 480.',
  ),
  passedHeaders: withDefault(
    'SIP_PASS_HEADERS',
    extensionHeaders,
    'none',
    'The X- headers that pass from one side of a call to the other, in both directions.',
  ),
  nonceSeconds: withDefault(
    'SIP_NONCE_SECONDS',
    wholeNumber(1, 86_400, 's'),
    '300',
    'How long a phone may use one digest challenge.',
  ),
  sessionExpiresSeconds: withDefault(
    'SIP_SESSION_EXPIRES_SECONDS',
    zeroOr(90, 86_400, 's'),
    '1800',
    'The session timer of each leg. A party that vanishes is noticed after about half of ' +
      'it. 0: none.',
  ),
  probeIntervalMs: withDefault(
    'PROBE_INTERVAL_MS',
    wholeNumber(100, 600_000, 'ms'),
    '500',
    'The time between two OPTIONS probes of a node. A dispatcher set may have values of its own.',
  ),
  probeTimeoutMs: withDefault(
    'PROBE_TIMEOUT_MS',
    wholeNumber(50, 60_000, 'ms'),
    '400',
    'How long a node may take to answer a probe.',
  ),
  gatewayProbeIntervalMs: withDefault(
    'GATEWAY_PROBE_INTERVAL_MS',
    wholeNumber(100, 600_000, 'ms'),
    '2000',
    "The time between two OPTIONS probes of a carrier's gateway. It has half of it to answer.",
  ),
  probeFailures: withDefault(
    'PROBE_FAILURES',
    wholeNumber(1, 100),
    '3',
    'How many failed probes in a row take a node out of service.',
  ),
  probeSuccesses: withDefault(
    'PROBE_SUCCESSES',
    wholeNumber(1, 100),
    '3',
    'How many answered probes in a row bring it back.',
  ),
  rtpengine: unset(
    'RTPENGINE',
    relayAddresses,
    'none',
    'The media relays (rtpengine, protocol ng). A relay of weight 0 is used when no other ' +
      'one answers.',
  ),
  mediaPolicy: withDefault(
    'MEDIA_POLICY',
    oneOf('bypass', 'prefer', 'anchor'),
    'bypass',
    'When media goes through a relay, for parties that do not say. bypass: only where it ' +
      'could not flow otherwise. prefer: when one answers. anchor: always.',
  ),
  mediaDtmfListen: unset(
    'MEDIA_DTMF_LISTEN',
    hostAndPort,
    'digits in RTP do not become INFO',
    'The address to which relays report digits in RTP (--dtmf-log-dest). Parties with dtmf ' +
      '"info" get them as INFO.',
  ),
  recordingsPath: unset(
    'RECORDINGS_PATH',
    text(1, 1_000),
    'calls are not recorded',
    'The folder of finished recordings. Needs RTPENGINE and RECORDING_SPOOL.',
  ),
  recordingSpool: unset(
    'RECORDING_SPOOL',
    text(1, 1_000),
    '–',
    'The --recording-dir of rtpengine (--recording-method=pcap), as this process sees it.',
  ),
  recordingTone: withDefault(
    'RECORDING_TONE',
    oneOf('on', 'off'),
    'off',
    'Whether both parties hear a tone when recording starts.',
  ),
  recordingRequired: withDefault(
    'RECORDING_REQUIRED',
    oneOf('on', 'off'),
    'off',
    'Whether a call that must be recorded is refused (503) when no relay answers. ' +
      'Emergency calls go on.',
  ),
  mediaTimeoutSeconds: withDefault(
    'MEDIA_TIMEOUT_SECONDS',
    zeroOr(5, 86_400, 's'),
    '60',
    'How long an answered call through a relay may be without RTP from either party, ' +
      'unless it is on hold. 0: never ends it.',
  ),
  mediaTimeoutCharge: withDefault(
    'MEDIA_TIMEOUT_CHARGE',
    oneOf('last_packet', 'end'),
    'last_packet',
    'Up to when such a call is charged: up to the last packet, or up to its end.',
  ),
  hooksFile: unset(
    'HOOKS',
    hooksFile,
    'no',
    'The file of code that is asked about calls, in TypeScript or JavaScript. A change, and ' +
      'SIGHUP, load it again.',
  ),
  hooksTimeoutMs: withDefault(
    'HOOKS_TIMEOUT_MS',
    wholeNumber(5, 10_000, 'ms'),
    '50',
    'How long a function of HOOKS may take to answer.',
  ),
  hooksFallback: withDefault(
    'HOOKS_FALLBACK',
    oneOf('continue', 'refuse'),
    'continue',
    'What becomes of a call whose hook fails or does not answer in time. continue: it goes on ' +
      'as without a hook. refuse: 503.',
  ),
  hooksMemoryMb: withDefault(
    'HOOKS_MEMORY_MB',
    wholeNumber(16, 16_384, 'MB'),
    '256',
    'Memory for HOOKS. A file that uses more is started anew.',
  ),
  stirAuthorities: unset(
    'STIR_AUTHORITIES',
    text(1, 1_000),
    'none beside those of the API',
    'The PEM file of the authorities whose certificates may sign calls. SIGHUP reads it again.',
  ),
  stirMaxAgeSeconds: withDefault(
    'STIR_MAX_AGE_SECONDS',
    wholeNumber(1, 3_600, 's'),
    '60',
    'How far the time of a signature may be from now.',
  ),
  stirCertificateHosts: unset(
    'STIR_CERTIFICATE_HOSTS',
    hostList,
    'all hosts of the internet',
    'The hosts from which certificates of signers are fetched.',
  ),
  stirPrivateTargets: withDefault(
    'STIR_PRIVATE_TARGETS',
    oneOf('deny', 'allow'),
    'deny',
    'Whether certificates may come from loopback and private addresses, and by plain HTTP.',
  ),
  stirSigningUrl: unset(
    'STIR_SIGNING_URL',
    httpUrl,
    'calls are signed by keys of the API',
    'A signing service (ATIS-1000082). It must answer POST {url}/stir/v1/signing.',
  ),
  stirSigningToken: hidden(
    unset('STIR_SIGNING_TOKEN', secret, '–', 'The bearer token for STIR_SIGNING_URL.'),
  ),
  paymentWebhookSecret: hidden(
    unset(
      'PAYMENT_WEBHOOK_SECRET',
      secret,
      'payments are refused with 503',
      'The signing secret of the Stripe webhook /api/client/payments/webhook.',
    ),
  ),
  webhookPrivateTargets: withDefault(
    'WEBHOOK_PRIVATE_TARGETS',
    oneOf('deny', 'allow'),
    'deny',
    'Whether webhooks may go to loopback and private addresses.',
  ),
  smtpUrl: hidden(
    unset(
      'SMTP_URL',
      smtpServer,
      'alert channels name their own',
      'The mail server for alerts by e-mail.',
    ),
  ),
  smtpFrom: unset(
    'SMTP_FROM',
    mailAddress,
    'e-mail needs a channel with its own mail server',
    'The address of the sender of alerts by SMTP_URL.',
  ),
  secretKey: hidden(
    unset(
      'SECRET_KEY',
      key32,
      'generated, in DATABASE_PATH.key',
      'The key that encrypts passwords and signing secrets in the database.',
    ),
  ),
  jwtSecret: hidden(
    unset(
      'JWT_SECRET',
      text(16, 1_000),
      'generated, kept in the database',
      'The key that signs login tokens.',
    ),
  ),
  adminUsername: withDefault(
    'ADMIN_USERNAME',
    userName,
    'admin',
    'The name of the first user. Only the first start reads it.',
  ),
  adminPassword: hidden(
    unset(
      'ADMIN_PASSWORD',
      text(8, 128),
      'random, printed once',
      'The password of the first user. Only the first start reads it.',
    ),
  ),
  callRecordRetentionDays: withDefault(
    'CDR_RETENTION_DAYS',
    wholeNumber(0, 36_500, 'days'),
    '400',
    'How long call records are kept. 0: for ever. Ledger entries are always kept.',
  ),
  recordingRetentionDays: withDefault(
    'RECORDING_RETENTION_DAYS',
    wholeNumber(0, 36_500, 'days'),
    '90',
    'How long recordings are kept. 0: for ever.',
  ),
  auditRetentionDays: withDefault(
    'AUDIT_RETENTION_DAYS',
    wholeNumber(0, 36_500, 'days'),
    '400',
    'How long audit entries are kept. 0: for ever.',
  ),
  backupDir: unset(
    'BACKUP_DIR',
    text(1, 1_000),
    'no backups',
    'The folder of automatic backups of the SQLite file. They do not hold its key. Use ' +
      'another disk.',
  ),
  backupIntervalHours: withDefault(
    'BACKUP_INTERVAL_HOURS',
    wholeNumber(1, 8_760, 'h'),
    '24',
    'The time between two backups.',
  ),
  backupKeep: withDefault('BACKUP_KEEP', wholeNumber(1, 10_000), '7', 'How many backups are kept.'),
  traceMemoryMb: withDefault(
    'TRACE_MEMORY_MB',
    wholeNumber(1, 2_048, 'MB'),
    '32',
    'Memory for the SIP messages of call traces. 32 MB hold 11 s of 200 calls/s, or 18 min ' +
      'of 2 calls/s.',
  ),
  hepServer: unset(
    'HEP_SERVER',
    hepServer,
    'no',
    'The HEP 3 server, such as Homer, that gets a copy of each SIP message.',
  ),
  hepCaptureId: withDefault(
    'HEP_CAPTURE_ID',
    wholeNumber(1, 999_999_999),
    '1',
    'The number of this process at the HEP server. Each node needs its own.',
  ),
  hepPassword: hidden(
    unset('HEP_PASSWORD', secret, 'no', 'The key that the HEP server asks for. Only TLS hides it.'),
  ),
  drainSeconds: withDefault(
    'DRAIN_SECONDS',
    wholeNumber(0, 3_600, 's'),
    '30',
    'How long live calls may go on after SIGTERM.',
  ),
  logLevel: withDefault(
    'LOG_LEVEL',
    oneOf('debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info',
    'The level of the log: JSON lines on standard error. info has one line per call.',
  ),
} as const

/** The titles of `--help`, each at the first setting of its group. */
export const settingGroups: Readonly<Record<string, string>> = {
  sipListen: 'SIP',
  apiListen: 'HTTP: API, console and customer edge',
  databasePath: 'Database and nodes',
  drachtioUrl: 'drachtio',
  trustedSources: 'Who may call',
  ocsUrl: 'Charging',
  nodeTimeoutMs: 'Calls',
  probeIntervalMs: 'Probes',
  rtpengine: 'Media and recording',
  hooksFile: 'Hooks',
  stirAuthorities: 'Signed calls',
  paymentWebhookSecret: 'Webhooks',
  secretKey: 'Secrets and the first user',
  callRecordRetentionDays: 'Retention and backups',
  traceMemoryMb: 'Operation',
} satisfies Partial<Record<keyof typeof settings, string>>

function withDefault<T>(
  name: string,
  kind: SettingKind<T>,
  defaultText: string,
  meaning: string,
): Setting<T> {
  const read = (value = defaultText) => parsed(kind, value)
  const { allowed } = kind
  return { name, allowed, meaning, defaultText, whenUnset: defaultText, isSecret: false, read }
}

function unset<T>(
  name: string,
  kind: SettingKind<T>,
  whenUnset: string,
  meaning: string,
): Setting<T | undefined> {
  const read = (value: string | undefined) =>
    value === undefined ? { value: undefined } : parsed(kind, value)
  const { allowed } = kind
  return { name, allowed, meaning, defaultText: undefined, whenUnset, isSecret: false, read }
}

function hidden<T>(setting: Setting<T>): Setting<T> {
  return { ...setting, isSecret: true }
}

function parsed<T>(kind: SettingKind<T>, value: string): { readonly value: T } | undefined {
  const result = kind.schema.safeParse(value)
  return result.success ? { value: result.data } : undefined
}
