import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { readConfig, withoutSecrets, WrongSetting } from '../../engine/config.ts'
import { settings } from '../../engine/settings.ts'

test('an empty environment gives the documented defaults', () => {
  expect(readConfig({})).toMatchObject({
    sip: {
      listen: [
        { protocol: 'udp', host: '0.0.0.0', port: 5060 },
        { protocol: 'tcp', host: '0.0.0.0', port: 5060 },
      ],
      tls: undefined,
      connectionsPerAddress: 256,
    },
    apiListen: { host: '127.0.0.1', port: 8080 },
    edgeListen: { host: '127.0.0.1', port: 8081 },
    httpConnectionsPerAddress: 256,
    trustedProxies: [],
    databasePath: 'data/tollgate.db',
    trustedSources: ['127.0.0.0/8', '::1/128'],
    edgeProxies: [],
    ocs: { url: undefined, timeoutMs: 1000, failMode: 'closed' },
    unknownCaller: 'deny',
    ringTimeoutMs: 180_000,
    sessionExpiresSeconds: 1_800,
    probe: { intervalMs: 500, timeoutMs: 400, gatewayIntervalMs: 2_000, failures: 3, successes: 3 },
    mediaPolicy: 'bypass',
    mediaTimeoutCharge: 'last_packet',
    webhookPrivateTargets: 'deny',
    stir: {
      authorities: undefined,
      maxAgeSeconds: 60,
      certificateHosts: [],
      privateTargets: 'deny',
      signing: undefined,
    },
    retention: { callRecordDays: 400, auditDays: 400, recordingDays: 90 },
    backup: { folder: undefined, intervalMs: 86_400_000, keep: 7 },
    drainSeconds: 30,
    logLevel: 'info',
  })
})

type Config = ReturnType<typeof readConfig>

const listeners = ({ sip }: Config) =>
  sip.listen.map(({ protocol, host, port }) => `${protocol} ${host} ${port}`)
const relays = (config: Config) =>
  config.relays.map(({ name, host, port, weight }) => [name, host, port, weight])
const uri = 'sip:[2001:db8::1]:5070;transport=tls'
const networks = ['10.0.0.0/8', '192.0.2.7/32', '2001:db8::/32']
const twoServers = 'drachtio://:cymru@10.0.0.1:9022, drachtio://:other@sip-2.example:9022/'
const withTls = 'drachtios://:cymru@sip.example:9023,drachtios://:other@[::1]:9023/?ca=/etc/ca.pem'

const right: [string, string, (config: Config) => unknown, unknown][] = [
  ['NODE_SIP_URI', uri, ({ instance }) => instance.sipUri, uri],
  ['SIP_LISTEN', 'udp/[::1]:5062, tcp/a.example:0', listeners, ['udp ::1 5062', 'tcp a.example 0']],
  ['SIP_LISTEN', 'tcp/[::1],ws/192.0.2.1', listeners, ['tcp ::1 5060', 'ws 192.0.2.1 80']],
  [
    'RTPENGINE',
    'udp/127.0.0.1:2223, udp/Relay.example.com:22222;weight=3,udp/[::1]:2223;weight=0',
    relays,
    [
      ['127.0.0.1:2223', '127.0.0.1', 2_223, 1],
      ['Relay.example.com:22222', 'Relay.example.com', 22_222, 3],
      ['[::1]:2223', '::1', 2_223, 0],
    ],
  ],
  [
    'SIP_WS_ORIGINS',
    'https://phone.example.com, http://LocalHost:8000',
    ({ sip }) => sip.webSocketOrigins,
    ['https://phone.example.com', 'http://localhost:8000'],
  ],
  [
    'SIP_DNS_SERVERS',
    '10.0.0.2, 10.0.0.3:5353,2001:db8::2,[::1]:53',
    ({ sip }) => sip.dnsServers,
    ['10.0.0.2', '10.0.0.3:5353', '2001:db8::2', '[::1]:53'],
  ],
  [
    'FOREIGN_DOMAINS',
    'A.example, b.test',
    ({ sip }) => sip.foreignDomains,
    ['a.example', 'b.test'],
  ],
  ['SIP_HOST_NAMES', 'SBC.example.com', ({ sip }) => sip.hostNames, ['sbc.example.com']],
  [
    'MCP_ALLOWED_HOSTS',
    'T.example, gate',
    (config) => config.mcpAllowedHosts,
    ['t.example', 'gate'],
  ],
  ['API_LISTEN', '0.0.0.0:80', (config) => config.apiListen, { host: '0.0.0.0', port: 80 }],
  [
    'DRACHTIO_URL',
    twoServers,
    ({ drachtio }) => drachtio.servers,
    [
      { secret: 'cymru', host: '10.0.0.1', port: 9022 },
      { secret: 'other', host: 'sip-2.example', port: 9022 },
    ],
  ],
  [
    'DRACHTIO_URL',
    withTls,
    ({ drachtio }) => drachtio.servers,
    [
      { secret: 'cymru', host: 'sip.example', port: 9023, tls: { caFile: undefined } },
      { secret: 'other', host: '::1', port: 9023, tls: { caFile: '/etc/ca.pem' } },
    ],
  ],
  ['TRUSTED_SOURCES', '10.0.0.0/8, 192.0.2.7,2001:db8::/32', (c) => c.trustedSources, networks],
  ['TRUSTED_SOURCES', 'none', (config) => config.trustedSources, []],
  ['EDGE_PROXIES', 'none', (config) => config.edgeProxies, []],
  [
    'EDGE_PROXIES',
    '10.0.0.5=acme+globex, 2001:db8::/32=acme',
    (config) => config.edgeProxies,
    [
      { network: '10.0.0.5/32', tenants: ['acme', 'globex'] },
      { network: '2001:db8::/32', tenants: ['acme'] },
    ],
  ],
  ['HOOKS', '', (config) => config.hooks, undefined],
  [
    'HOOKS',
    './hooks.mts',
    (config) => config.hooks,
    { file: './hooks.mts', timeoutMs: 50, fallback: 'continue', memoryMb: 256 },
  ],
  ['OCS_URL', 'https://ocs.example.com/', (config) => config.ocs.url, 'https://ocs.example.com'],
  ['RECORDING_RETENTION_DAYS', '0', (config) => config.retention.recordingDays, 0],
  ['PROBE_INTERVAL_MS', '', (config) => config.probe.intervalMs, 500],
]

test.each(right)('%s=%s is understood', (name, value, pick, expected) => {
  expect(pick(readConfig({ [name]: value }))).toEqual(expected)
})

const wrong: Readonly<Record<string, readonly string[]>> = {
  HEP_SERVER: ['tcp:homer:9060', 'homer:0', 'homer:70000', 'http://homer', 'a b'],
  RTPENGINE: [
    ...['127.0.0.1:2223', 'tcp/127.0.0.1:2223', 'udp/127.0.0.1', 'udp/127.0.0.1:0'],
    ...[';weight=101', ';weight=-1', ';weight=', ';wait=1', ',', ',udp/127.0.0.1:2223'].map(
      (end) => `udp/127.0.0.1:2223${end}`,
    ),
    Array.from({ length: 33 }, (_, n) => `udp/10.0.0.${n}:2223`).join(),
  ],
  SIP_LISTEN: ['0.0.0.0:5060', 'udp/0.0.0.0:70000', 'udp/0.0.0.0:5060,', 'sctp/0.0.0.0:5060'],
  SIP_WS_ORIGINS: ['https://phone.example.com/page'],
  SIP_TLS_MIN_VERSION: ['1.1'],
  SIP_TLS_CLIENT_CERTIFICATES: ['yes'],
  SIP_TLS_VERIFY: ['no'],
  SIP_DNS_SERVERS: ['dns.example.com', '10.0.0.2:0'],
  SIP_ADVERTISED_HOST: ['not a host'],
  SIP_SESSION_EXPIRES_SECONDS: ['89'],
  NODE_SIP_URI: ['10.0.0.1', 'sip:', 'sip:user@10.0.0.1', 'sip:10.0.0.1;transport=ws', 'sip:a;lr'],
  API_LISTEN: ['8080'],
  EDGE_LISTEN: ['[127.0.0.1]:80'],
  TRUSTED_SOURCES: ['10.0.0.0/33', 'localhost'],
  EDGE_PROXIES: ['10.0.0.5', '10.0.0.5=*', 'proxy=acme'],
  HOOKS: ['hooks.py', '.ts', 'hooks.tsx'],
  HOOKS_TIMEOUT_MS: ['0', '10001'],
  HOOKS_FALLBACK: ['deny'],
  OCS_URL: ['ftp://ocs.example.com'],
  OCS_TIMEOUT_MS: ['abc', '49'],
  OCS_FAIL_MODE: ['shut'],
  UNKNOWN_CALLER: ['maybe'],
  PROBE_FAILURES: ['0', '1.5'],
  AUDIT_RETENTION_DAYS: ['-1', '1.5'],
  LOG_LEVEL: ['loud'],
}

test.each(
  Object.entries(wrong).flatMap(([name, values]) => values.map((value) => [name, value] as const)),
)('%s=%s is refused in one line that names both and what is allowed', (name, value) => {
  const allowed = Object.values(settings).find((setting) => setting.name === name)?.allowed
  expect(() => readConfig({ [name]: value })).toThrow(
    new WrongSetting(`${name} is "${value}"; allowed is ${allowed}`),
  )
})

const certificate = { SIP_TLS_CERT: 'cert.pem', SIP_TLS_KEY: 'key.pem' }

test.each([
  ['homer.example', 'homer.example', 9_060, false],
  ['udp:[::1]:9063', '::1', 9_063, false],
  ['tls/10.0.0.9', '10.0.0.9', 9_060, true],
  ['tls:homer.example:9061', 'homer.example', 9_061, true],
  ['tls://homer.example:9061', 'homer.example', 9_061, true],
])('HEP_SERVER=%s is %s at %s, by TLS: %s', (HEP_SERVER, host, port, isTls) => {
  const { hep } = readConfig({ HEP_SERVER, HEP_CAPTURE_ID: '7', SIP_TLS_CA: 'ca.pem' })
  const tls = { caFile: 'ca.pem', minVersion: 'TLSv1.2', verifyServers: true }
  expect(hep).toEqual({ host, port, agentId: 7, tls: isTls ? tls : undefined })
})

test.each(['tls', 'wss'])('a %s listener needs a certificate and its key', (protocol) => {
  const SIP_LISTEN = `udp/0.0.0.0:5060,${protocol}/0.0.0.0:5061`
  expect(() => readConfig({ SIP_LISTEN })).toThrow(
    `SIP_LISTEN is "${SIP_LISTEN}": for ${protocol}, SIP_TLS_CERT and SIP_TLS_KEY must be set with it`,
  )
  expect(() => readConfig({ SIP_LISTEN, SIP_TLS_CERT: 'cert.pem' })).toThrow(
    'SIP_TLS_CERT is "cert.pem"; SIP_TLS_KEY must be set with it',
  )
  expect(readConfig({ SIP_LISTEN, ...certificate }).sip.listen).toContainEqual({
    protocol,
    host: '0.0.0.0',
    port: 5_061,
  })
})

test('TLS verifies servers, asks no client for a certificate and speaks 1.2 or newer, unless told', () => {
  expect(readConfig(certificate).sip.tls).toMatchObject({
    certFile: 'cert.pem',
    minVersion: 'TLSv1.2',
    clientCertificates: 'off',
    verifyServers: true,
  })
  const told = {
    SIP_TLS_CHAIN: 'chain.pem',
    SIP_TLS_CA: 'ca.pem',
    SIP_TLS_MIN_VERSION: '1.3',
    SIP_TLS_CLIENT_CERTIFICATES: 'required',
    SIP_TLS_VERIFY: 'off',
  }
  expect(readConfig({ ...certificate, ...told }).sip.tls).toEqual({
    certFile: 'cert.pem',
    keyFile: 'key.pem',
    chainFile: 'chain.pem',
    caFile: 'ca.pem',
    minVersion: 'TLSv1.3',
    clientCertificates: 'required',
    verifyServers: false,
  })
})

test('the value of a secret is not shown when it is wrong', () => {
  expect(() => readConfig({ JWT_SECRET: 'hunter2' })).toThrow(/^JWT_SECRET is set to a value that/)
  expect(() => readConfig({ SECRET_KEY: 'hunter2' })).toThrow(/^SECRET_KEY is set to a value that/)
  expect(() => readConfig({ DRACHTIO_URL: 'drachtio:hunter2@h:9022' })).toThrow(
    /^DRACHTIO_URL is set to a value that [^"]*allowed is a comma list of drachtio:/,
  )
  for (const name of ['JWT_SECRET', 'DRACHTIO_URL'])
    expect(() => readConfig({ [name]: 'hunter2' })).not.toThrow(/hunter2/)
})

test('recording needs a folder, the spool of a relay, and a relay', () => {
  const environment = {
    RTPENGINE: 'udp/127.0.0.1:2223',
    RECORDINGS_PATH: '/var/lib/recordings',
    RECORDING_SPOOL: '/var/spool/rtpengine',
    RECORDING_TONE: 'on',
  }
  expect(readConfig(environment).recording).toEqual({
    folder: '/var/lib/recordings',
    spool: '/var/spool/rtpengine',
    hasTone: true,
    isRequired: false,
  })
  expect(readConfig({ ...environment, RECORDING_REQUIRED: 'on' }).recording?.isRequired).toBe(true)
  expect(() => readConfig({ RECORDING_REQUIRED: 'on' })).toThrow(WrongSetting)
  for (const missing of ['RTPENGINE', 'RECORDINGS_PATH', 'RECORDING_SPOOL'])
    expect(() => readConfig({ ...environment, [missing]: undefined })).toThrow(WrongSetting)
})

const DRACHTIO_URL = 'drachtio://:cymru@10.0.0.1:9022'
const DRACHTIO_LISTEN = '127.0.0.1:9022'
const DATABASE_URL = 'postgres://tollgate@localhost/tollgate'

test.each([
  [{ HEP_SERVER: 'homer', DRACHTIO_URL }, 'is "homer" beside DRACHTIO_URL; allowed is one of them'],
  [{ DRACHTIO_LISTEN }, 'is "127.0.0.1:9022"; DRACHTIO_SECRET must be set with it'],
  [{ DRACHTIO_LISTEN, DRACHTIO_SECRET: 'x', DRACHTIO_URL }, 'allowed is one of them'],
  // Instances could not reach the phones of each other.
  [
    { DATABASE_URL, DRACHTIO_URL },
    /^DRACHTIO_URL is set beside DATABASE_URL; .*Unset DRACHTIO_URL/,
  ],
  [{ DATABASE_URL, BACKUP_DIR: '/backups' }, /is "\/backups" .*pg_dump/],
  [{ DATABASE_URL, DATABASE_PATH: ':memory:' }, /is ":memory:" .*journal/],
  [{ DATABASE_URL: 'mysql://localhost/tollgate' }, 'not shown'],
  [{ MEDIA_DTMF_LISTEN: '127.0.0.1:22223' }, 'is "127.0.0.1:22223"; RTPENGINE'],
  [{ RECORDING_REQUIRED: 'on' }, 'is "on"; RECORDINGS_PATH must be set with it'],
  [{ RECORDING_SPOOL: '/spool' }, 'is "/spool"; RECORDINGS_PATH must be set with it'],
  [{ RECORDINGS_PATH: '/recordings' }, 'is "/recordings"; RECORDING_SPOOL must be set with it'],
  [{ SIP_TLS_KEY: 'key.pem' }, 'is "key.pem"; SIP_TLS_CERT must be set with it'],
  [{ EDGE_LISTEN: '127.0.0.1:8080' }, 'is "127.0.0.1:8080", as API_LISTEN is; allowed is another'],
])(
  '%j do not go together: the error names a setting, its value and what is allowed',
  (environment, told) => {
    expect(() => readConfig(environment)).toThrow(told)
    expect(() => readConfig(environment)).toThrow(/^[A-Z_]+ is (?:".+"|set )/)
  },
)

test('the settings of an instance in GUIDE.md are right, for the program and for a shell', () => {
  const guide = readFileSync('GUIDE.md', 'utf8')
  const [, file = ''] = /```ini\n(# \.env of [\s\S]*?)\n```/.exec(guide) ?? []
  const text = file.replace('SECRET_KEY=', `SECRET_KEY=${'A'.repeat(43)}`)
  const ofInstance = parseEnv(text)
  expect(readConfig(ofInstance)).toMatchObject({ databaseUrl: ofInstance['DATABASE_URL'] })
  const shell = spawnSync('sh', ['-c', `set -a\n${text}\nprintf %s "$DATABASE_URL"`])
  expect(shell.stdout.toString()).toBe(ofInstance['DATABASE_URL'])
  expect(ofInstance['DATABASE_URL']).toContain('?sslmode=verify-full&sslrootcert=')
})

test('the file of hooks sees the environment without our secrets', () => {
  const secrets = Object.values(settings).filter(({ isSecret }) => isSecret)
  expect(secrets.length).toBeGreaterThan(5)
  const environment = Object.fromEntries(secrets.map(({ name }) => [name, 'a secret']))
  expect(
    withoutSecrets({ ...environment, CRM_URL: 'https://crm.example', UNSET: undefined }),
  ).toEqual({ CRM_URL: 'https://crm.example' })
})
