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
  hostName,
  hostNames,
  httpUrl,
  key32,
  type Kind,
  listenAddresses,
  nodeName,
  nodeSipUri,
  oneOf,
  postgresUrl,
  relayAddresses,
  text,
  userName,
  webOrigins,
  wholeNumber,
  zeroOr,
} from './setting-kinds.ts'

export interface Setting<T> {
  readonly name: string
  readonly allowed: string
  readonly meaning: string
  /** As text, as it would be set; undefined: unset has a meaning of its own. */
  readonly defaultText: string | undefined
  /** What help shows for the default when there is no text for it. */
  readonly whenUnset: string
  /** Never shown, in errors neither. */
  readonly isSecret: boolean
  /** Undefined: the text is not allowed. */
  read(value: string | undefined): { readonly value: T } | undefined
}

const secret = text(1, 200)
const pemFile = text(1, 1_000)

/** In the order of `--help`. */
export const settings = {
  sipListen: withDefault(
    'SIP_LISTEN',
    listenAddresses,
    'udp/0.0.0.0:5060,tcp/0.0.0.0:5060',
    'where SIP is served: udp, tcp, tls, ws, wss; without port 5060, 5061 for tls, 80 and 443 for ws and wss',
  ),
  sipConnectionsPerAddress: withDefault(
    'SIP_CONNECTIONS_PER_ADDRESS',
    wholeNumber(1, 10_000),
    '256',
    'connections to each listener that one address, or IPv6 network of /64, may have; further ones are closed',
  ),
  sipAdvertisedHost: unset(
    'SIP_ADVERTISED_HOST',
    hostName,
    'the bound address',
    'public address for Via and Contact behind NAT',
  ),
  sipHostNames: unset(
    'SIP_HOST_NAMES',
    hostNames,
    'none',
    "comma list of further names that mean this SBC when a phone dials them, beside its addresses and tenants' domains",
  ),
  foreignDomains: unset(
    'FOREIGN_DOMAINS',
    hostNames,
    'none: such calls get 404',
    'comma list of domains of others that phones may call by DNS, at the price of the number that they dial',
  ),
  sipTlsCert: unset(
    'SIP_TLS_CERT',
    pemFile,
    '–',
    'PEM file for tls and wss, may hold its chain; read again when it changes and at SIGHUP',
  ),
  sipTlsKey: unset('SIP_TLS_KEY', pemFile, '–', 'PEM file with its key'),
  sipTlsChain: unset('SIP_TLS_CHAIN', pemFile, '–', 'PEM file with the rest of its chain'),
  sipTlsCa: unset(
    'SIP_TLS_CA',
    pemFile,
    'those that Node.js ships',
    'PEM file of the trusted CA certificates',
  ),
  sipTlsMinVersion: withDefault(
    'SIP_TLS_MIN_VERSION',
    oneOf('1.2', '1.3'),
    '1.2',
    'oldest TLS that is spoken',
  ),
  sipTlsClientCertificates: withDefault(
    'SIP_TLS_CLIENT_CERTIFICATES',
    oneOf('off', 'optional', 'required'),
    'off',
    'whether peers that connect to a tls listener show a certificate',
  ),
  sipTlsVerify: withDefault(
    'SIP_TLS_VERIFY',
    oneOf('on', 'off'),
    'on',
    'whether nodes and gateways that are called by TLS must show a valid certificate',
  ),
  sipWsOrigins: unset(
    'SIP_WS_ORIGINS',
    webOrigins,
    'all',
    'comma list of the web pages whose phones may connect by ws and wss',
  ),
  sipDnsServers: unset(
    'SIP_DNS_SERVERS',
    dnsServers,
    "the system's",
    'comma list of the DNS servers that say where SIP hosts are; unset, the hosts file counts first',
  ),
  apiListen: withDefault('API_LISTEN', hostAndPort, '127.0.0.1:8080', 'control API'),
  publicUrl: unset(
    'PUBLIC_URL',
    httpUrl,
    'webhooks have no links',
    'address under which people reach the API and the console, such as https://gate.example; links in webhooks begin with it',
  ),
  edgeListen: withDefault('EDGE_LISTEN', hostAndPort, '127.0.0.1:8081', 'customer edge'),
  httpConnectionsPerAddress: withDefault(
    'HTTP_CONNECTIONS_PER_ADDRESS',
    wholeNumber(1, 4_096),
    '256',
    'connections to the API, and to the edge, that one address, or IPv6 network of /64, may have; others get 503',
  ),
  trustedProxies: withDefault(
    'TRUSTED_PROXIES',
    addressRanges,
    'none',
    'peers whose X-Forwarded-For and Forwarded are trusted; their connections are not limited by address',
  ),
  mcpAllowedHosts: unset(
    'MCP_ALLOWED_HOSTS',
    hostNames,
    'addresses and localhost',
    'comma list of further names by which /mcp may be reached, such as that of a proxy',
  ),
  databasePath: withDefault('DATABASE_PATH', text(1, 1_000), 'data/tollgate.db', 'SQLite file'),
  databaseUrl: hidden(
    unset(
      'DATABASE_URL',
      postgresUrl,
      'SQLite, at DATABASE_PATH',
      'postgres://user:password@host[,host…]/database: serve from PostgreSQL, of several hosts from the one that takes writes; DATABASE_PATH is then the place of the journal of calls',
    ),
  ),
  databaseAwaySeconds: withDefault(
    'DATABASE_AWAY_SECONDS',
    wholeNumber(5, 600, 's'),
    '10',
    'how long this node goes on with its shares of wallets while the PostgreSQL server does not answer',
  ),
  journalKeepSeconds: withDefault(
    'JOURNAL_KEEP_SECONDS',
    zeroOr(1, 3_600, 's'),
    '60',
    'how long the journal keeps calls that PostgreSQL has stored, for a standby that takes over without them; 0: not at all',
  ),
  nodeName: unset(
    'NODE_NAME',
    nodeName,
    'the host name',
    'name of this process among those that share a database; each has its own',
  ),
  nodeUrl: unset(
    'NODE_URL',
    httpUrl,
    'http:// and API_LISTEN',
    'where the other nodes reach the API of this one',
  ),
  nodeSipUri: unset(
    'NODE_SIP_URI',
    nodeSipUri,
    'the first of SIP_LISTEN',
    'where the other nodes send calls for phones that have registered here, such as sip:10.0.0.1:5060',
  ),
  drachtioUrl: hidden(
    unset(
      'DRACHTIO_URL',
      drachtioUrls,
      'the embedded server',
      'real drachtio-servers: drachtio://:secret@host:port, by TLS drachtios://…[?ca=file]; several take turns',
    ),
  ),
  drachtioListen: unset(
    'DRACHTIO_LISTEN',
    hostAndPort,
    'no',
    'let other drachtio apps connect to the embedded server; needs DRACHTIO_SECRET',
  ),
  drachtioSecret: hidden(unset('DRACHTIO_SECRET', secret, '–', 'what those apps must present')),
  trustedSources: withDefault(
    'TRUSTED_SOURCES',
    addressRanges,
    '127.0.0.0/8,::1/128',
    'sources that may spend any wallet (From names the payer) and replace any call; keep it to programs of this machine',
  ),
  edgeProxies: withDefault(
    'EDGE_PROXIES',
    edgeProxyRules,
    'none',
    'proxies that authenticate the users of some tenants: From names customers of these, and their Path is trusted',
  ),
  tenantNetworks: withDefault(
    'TENANT_NETWORKS',
    addressRanges,
    'none',
    "addresses on loopback, link-local or this machine's private networks to which agents, nodes and gateways that tenants write may lead nonetheless",
  ),
  ocsUrl: unset(
    'OCS_URL',
    httpUrl,
    'charging in this process',
    'external OCS: GET {url}/api/ocs/authorize, POST {url}/api/ocs/cdr',
  ),
  ocsToken: hidden(unset('OCS_TOKEN', secret, '–', 'bearer token for it')),
  ocsTimeoutMs: withDefault(
    'OCS_TIMEOUT_MS',
    wholeNumber(50, 60_000, 'ms'),
    '1000',
    'how long it may take to answer',
  ),
  ocsFailMode: withDefault(
    'OCS_FAIL_MODE',
    oneOf('closed', 'open'),
    'closed',
    'when it (or, for several nodes, the database) does not answer: refuse the call with 503, or let it pass',
  ),
  unknownCaller: withDefault(
    'UNKNOWN_CALLER',
    oneOf('deny', 'allow'),
    'deny',
    'allow sets up calls of callers without a customer, at cost 0',
  ),
  exitCodes: unset(
    'EXIT_CODES',
    exitCodes,
    'none; spend guards take 00, 0011, 011 and 810 for such codes',
    'comma list of what is dialled in place of +: a called number that begins with one is priced, blocked, routed and counted as the number with +; the same on all nodes',
  ),
  nodeTimeoutMs: withDefault(
    'NODE_TIMEOUT_MS',
    wholeNumber(100, 60_000, 'ms'),
    '1500',
    'silence after which the next candidate is tried',
  ),
  nodeProgressTimeoutMs: withDefault(
    'NODE_PROGRESS_TIMEOUT_MS',
    wholeNumber(100, 60_000, 'ms'),
    '6000',
    'with DRACHTIO_URL: how long a node that answers OPTIONS may take to ring before the next is tried',
  ),
  ringTimeoutSeconds: withDefault(
    'RING_TIMEOUT_SECONDS',
    wholeNumber(1, 3_600, 's'),
    '180',
    'how long a call may ring before it ends with 480',
  ),
  passedHeaders: withDefault(
    'SIP_PASS_HEADERS',
    extensionHeaders,
    'none',
    'comma list of the X- headers that pass from one side of a call to the other, in both directions',
  ),
  nonceSeconds: withDefault(
    'SIP_NONCE_SECONDS',
    wholeNumber(1, 86_400, 's'),
    '300',
    'how long a phone may answer one challenge; then it gets a new one, without asking its user',
  ),
  sessionExpiresSeconds: withDefault(
    'SIP_SESSION_EXPIRES_SECONDS',
    zeroOr(90, 86_400, 's'),
    '1800',
    'session timer of each leg: a party that vanishes is noticed after about half of it; 0: none',
  ),
  probeIntervalMs: withDefault(
    'PROBE_INTERVAL_MS',
    wholeNumber(100, 600_000, 'ms'),
    '500',
    'time between two OPTIONS to a node; this and the next three are defaults of a set',
  ),
  probeTimeoutMs: withDefault(
    'PROBE_TIMEOUT_MS',
    wholeNumber(50, 60_000, 'ms'),
    '400',
    'how long a node may take to answer one',
  ),
  gatewayProbeIntervalMs: withDefault(
    'GATEWAY_PROBE_INTERVAL_MS',
    wholeNumber(100, 600_000, 'ms'),
    '2000',
    "time between two OPTIONS to a carrier's gateway, which has half of it to answer",
  ),
  probeFailures: withDefault(
    'PROBE_FAILURES',
    wholeNumber(1, 100),
    '3',
    'failures in a row that take a node out',
  ),
  probeSuccesses: withDefault(
    'PROBE_SUCCESSES',
    wholeNumber(1, 100),
    '3',
    'successes in a row that bring it back',
  ),
  rtpengine: unset(
    'RTPENGINE',
    relayAddresses,
    'none',
    'media relays (rtpengine), comma list of udp/host:port[;weight=N] of ng; weight 0 is for when no other answers',
  ),
  mediaPolicy: withDefault(
    'MEDIA_POLICY',
    oneOf('bypass', 'prefer', 'anchor'),
    'bypass',
    'media of parties without a rule of their own: bypass uses a relay only where media could not flow otherwise',
  ),
  mediaDtmfListen: unset(
    'MEDIA_DTMF_LISTEN',
    hostAndPort,
    'digits in RTP do not become INFO',
    'where relays tell of digits in RTP by UDP (their --dtmf-log-dest): they become INFO to parties with dtmf "info"',
  ),
  recordingsPath: unset(
    'RECORDINGS_PATH',
    text(1, 1_000),
    'calls are not recorded',
    'folder for finished recordings; needs RTPENGINE and RECORDING_SPOOL',
  ),
  recordingSpool: unset(
    'RECORDING_SPOOL',
    text(1, 1_000),
    '–',
    'the --recording-dir of rtpengine (--recording-method=pcap), as this process sees it',
  ),
  recordingTone: withDefault(
    'RECORDING_TONE',
    oneOf('on', 'off'),
    'off',
    'on: both parties hear a tone when recording starts',
  ),
  recordingRequired: withDefault(
    'RECORDING_REQUIRED',
    oneOf('on', 'off'),
    'off',
    'on: no relay, no call (503) where an extension wants all of its calls recorded; emergency calls go on',
  ),
  mediaTimeoutSeconds: withDefault(
    'MEDIA_TIMEOUT_SECONDS',
    zeroOr(5, 86_400, 's'),
    '60',
    'an answered call through a media relay without RTP from either party, and not on hold, ends after so long; 0: never',
  ),
  mediaTimeoutCharge: withDefault(
    'MEDIA_TIMEOUT_CHARGE',
    oneOf('last_packet', 'end'),
    'last_packet',
    'up to when such a call is charged; end: also for its silence, as carriers charge for it',
  ),
  paymentWebhookSecret: hidden(
    unset(
      'PAYMENT_WEBHOOK_SECRET',
      secret,
      'payments are refused with 503',
      'signing secret of the Stripe webhook /api/client/payments/webhook',
    ),
  ),
  webhookPrivateTargets: withDefault(
    'WEBHOOK_PRIVATE_TARGETS',
    oneOf('deny', 'allow'),
    'deny',
    'allow lets accounting webhooks go to loopback and private addresses',
  ),
  secretKey: hidden(
    unset(
      'SECRET_KEY',
      key32,
      'generated, in DATABASE_PATH.key',
      'encrypts passwords and signing secrets in the database',
    ),
  ),
  jwtSecret: hidden(
    unset('JWT_SECRET', text(16, 1_000), 'generated, kept in the database', 'signs login tokens'),
  ),
  adminUsername: withDefault('ADMIN_USERNAME', userName, 'admin', 'first start only'),
  adminPassword: hidden(
    unset('ADMIN_PASSWORD', text(8, 128), 'random, printed once', 'first start only'),
  ),
  callRecordRetentionDays: withDefault(
    'CDR_RETENTION_DAYS',
    wholeNumber(0, 36_500, 'days'),
    '400',
    'call records older than this are removed; 0 keeps them; the ledger is always kept',
  ),
  recordingRetentionDays: withDefault(
    'RECORDING_RETENTION_DAYS',
    wholeNumber(0, 36_500, 'days'),
    '90',
    'recordings older than this are removed, file and row; 0 keeps them',
  ),
  auditRetentionDays: withDefault(
    'AUDIT_RETENTION_DAYS',
    wholeNumber(0, 36_500, 'days'),
    '400',
    'audit entries older than this are removed; 0 keeps them',
  ),
  backupDir: unset(
    'BACKUP_DIR',
    text(1, 1_000),
    'no backups',
    'folder into which the database is copied every BACKUP_INTERVAL_HOURS, without its key; on another disk, if possible',
  ),
  backupIntervalHours: withDefault(
    'BACKUP_INTERVAL_HOURS',
    wholeNumber(1, 8_760, 'h'),
    '24',
    'time between two of these copies',
  ),
  backupKeep: withDefault(
    'BACKUP_KEEP',
    wholeNumber(1, 10_000),
    '7',
    'so many of the newest copies are kept',
  ),
  traceMemoryMb: withDefault(
    'TRACE_MEMORY_MB',
    wholeNumber(1, 2_048, 'MB'),
    '32',
    'memory for the last SIP messages, which traces show; 32 are 11 s of 200 calls/s, 18 min of two',
  ),
  hepServer: unset(
    'HEP_SERVER',
    hepServer,
    'no',
    'a copy of each SIP message goes there, for Homer (HEP3); by TLS the certificate is checked as SIP_TLS_CA and SIP_TLS_VERIFY say',
  ),
  hepCaptureId: withDefault(
    'HEP_CAPTURE_ID',
    wholeNumber(1, 999_999_999),
    '1',
    'by which number the HEP server knows this process; each node has its own',
  ),
  hepPassword: hidden(
    unset('HEP_PASSWORD', secret, 'no', 'the key that the HEP server asks for; only TLS hides it'),
  ),
  drainSeconds: withDefault(
    'DRAIN_SECONDS',
    wholeNumber(0, 3_600, 's'),
    '30',
    'how long live calls may go on after SIGTERM',
  ),
  logLevel: withDefault(
    'LOG_LEVEL',
    oneOf('debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info',
    'JSON lines on standard error; one line per call at info',
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
  paymentWebhookSecret: 'Webhooks',
  secretKey: 'Secrets and the first user',
  callRecordRetentionDays: 'Retention and backups',
  traceMemoryMb: 'Operation',
} satisfies Partial<Record<keyof typeof settings, string>>

function withDefault<T>(
  name: string,
  kind: Kind<T>,
  defaultText: string,
  meaning: string,
): Setting<T> {
  const read = (value = defaultText) => parsed(kind, value)
  const { allowed } = kind
  return { name, allowed, meaning, defaultText, whenUnset: defaultText, isSecret: false, read }
}

function unset<T>(
  name: string,
  kind: Kind<T>,
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

function parsed<T>(kind: Kind<T>, value: string): { readonly value: T } | undefined {
  const result = kind.schema.safeParse(value)
  return result.success ? { value: result.data } : undefined
}
