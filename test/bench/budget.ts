/**
 * Where the CPU time of a billed call goes: a profile of the started program under SIPp's calls,
 * added up by part.
 */
import { freePort } from '../support/free-port.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { Profiler, type Share } from './load/cpu-profile.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { optionsOf } from './load/options.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'µs of CPU per billed call by part, from a profile; arguments: rate=500 seconds=20 files=no functions=0 media=bypass|anchor database=sqlite|postgres'

const usual = {
  rate: '500',
  seconds: '20',
  files: 'no',
  functions: '0',
  media: 'bypass',
  database: 'sqlite',
}

/** The first that matches a file or a function counts. */
const parts: readonly (readonly [part: string, file: RegExp, name?: RegExp])[] = [
  ['garbage collection', /garbage collector/],
  ['the runtime outside JavaScript', /^\(/],
  ['SQLite', /better-sqlite3|schema\/sql\/sqlite-statements\.ts/],
  ['PostgreSQL', /node_modules\/pg|schema\/(postgres|nodes|sql)\/|schema\/changes\/server/],
  ['PostgreSQL', /^node:(net|internal\/(stream_base|streams))/],
  ['UDP', /^node:(dgram|internal\/dgram)|transport\/udp/],
  [
    'drachtio-srf',
    /node_modules\/(drachtio|delegates|only|debug|sip-)|^node:(events|util)|in-process-wire/,
  ],
  ['SIP grammar', /sip-server\/message\//],
  ['SIP stack', /engine\/sip-server\//],
  ['call control', /engine\/call\//],
  ['charging and settlement', /engine\/charging|control\/billing/],
  ['media', /engine\/media\//],
  ['dispatcher and routing', /engine\/(dispatcher|routing|trunks|registrar|guard)/],
  [
    'events, totals, telemetry',
    /engine\/event|engine\/call-totals|engine\/refused|control\/(events|telemetry|webhooks)/,
  ],
  ['timers and queues of Node.js', /^node:/],
]

export async function run(words: readonly string[] = []): Promise<void> {
  const options = optionsOf(words, usual)
  const [rate, seconds] = [Number(options.rate), Number(options.seconds)]
  const isOnServer = options.database === 'postgres'
  if (isOnServer && !hasPostgres) return console.log('  PostgreSQL is not installed')
  const server = isOnServer ? await freshDatabase() : undefined
  const nodes = [await startNode(), await startNode(), await startNode()]
  const inspectorPort = await freePort()
  const relay = options.media === 'anchor' ? await RtpEngine.start({ shares: 8 }) : undefined
  const tollgate = await TollgateProcess.start(oneCustomer(nodes.map(({ port }) => port)), {
    LOG_LEVEL: 'warn',
    ...(relay && { RTPENGINE: relay.setting, MEDIA_POLICY: 'anchor' }),
    ...(server && { DATABASE_URL: server.url, SECRET_KEY: 'A'.repeat(43), NODE_NAME: 'bench' }),
    NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}`,
  })
  try {
    const profiler = await Profiler.connect(inspectorPort)
    const load = async (): Promise<{ spent: number; calls: number; succeeded: number }> => {
      const before = cpuMicros([tollgate.pid])
      const result = await placeCalls(tollgate.sipPort, rate, rate * seconds, caller)
      return { ...result, spent: cpuMicros([tollgate.pid]) - before }
    }
    await placeCalls(tollgate.sipPort, rate, rate * 15, caller)
    const plain = await load()
    await profiler.start()
    const { spent, calls, succeeded } = await load()
    const shares = await profiler.stop()
    profiler.close()
    console.log(`  ${succeeded} of ${calls} calls at ${rate}/s; µs per call`)
    print(shares, spent, succeeded)
    console.log(
      `  ${perCall(plain.spent, plain.succeeded)}  the whole process, without the profiler`,
    )
    if (options.files === 'yes') printFiles(shares, succeeded)
    for (const { file, name, micros } of shares.slice(0, Number(options.functions)))
      console.log(`  ${perCall(micros, succeeded)}  ${file} ${name}`)
  } finally {
    await tollgate.stop()
    await relay?.stop()
    for (const node of nodes) await node.stop()
    await server?.drop()
  }
}

function partOf({ file, name }: Share): string {
  const found = parts.find(([, files, names]) => files.test(file) && (names?.test(name) ?? true))
  return found?.[0] ?? 'the rest'
}

function print(shares: readonly Share[], spentMicros: number, calls: number): void {
  const mainThread = shares.reduce((sum, { micros }) => sum + micros, 0)
  const byPart = Object.entries(sumBy(shares, partOf))
  const rows: (readonly [string, number])[] = [
    ...byPart.toSorted(([, a], [, b]) => b - a),
    ['other threads: garbage collection, compilation, the profiler', spentMicros - mainThread],
    ['the whole process', spentMicros],
  ]
  for (const [part, micros] of rows) console.log(`  ${perCall(micros, calls)}  ${part}`)
}

function printFiles(shares: readonly Share[], calls: number): void {
  const rows = Object.entries(sumBy(shares, ({ file }) => file)).toSorted(([, a], [, b]) => b - a)
  console.log('  by file')
  for (const [file, micros] of rows.slice(0, 120))
    console.log(`  ${perCall(micros, calls)}  ${file}`)
}

function sumBy(shares: readonly Share[], keyOf: (share: Share) => string): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const share of shares) sums[keyOf(share)] = (sums[keyOf(share)] ?? 0) + share.micros
  return sums
}

const perCall = (micros: number, calls: number): string =>
  (micros / Math.max(1, calls)).toFixed(1).padStart(7)
