/**
 * Kamailio at its best with the same nodes, where it is installed: bare, which is the limit, or
 * with the promises of Tollgate.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { eventually } from '../../support/waiting.ts'
import { processTree } from './process-cpu.ts'

/**
 * `bare` hides no topology, and its charging server forgets every wallet at a crash. `same-job`
 * hides it, with its state in Redis, and has reservations, debits and records on disk before it
 * answers.
 */
export type PeerKind = 'bare' | 'same-job'

const modules: Readonly<Record<PeerKind, readonly (readonly [file: string, what: string])[]>> = {
  bare: [['http_client.so', 'kamailio-utils-modules']],
  'same-job': [
    ['http_client.so', 'kamailio-utils-modules'],
    ['topos_redis.so', 'kamailio-redis-modules'],
  ],
}

/** Tells what is missing for the peer, as a sentence; undefined: nothing. */
export function whyNoKamailio(kind: PeerKind): string | undefined {
  const finds = (command: string): boolean => spawnSync('sh', ['-c', command]).status === 0
  if (!finds('command -v kamailio')) return 'kamailio is not installed'
  if (kind === 'same-job' && !finds('command -v redis-server'))
    return 'redis-server is not installed'
  for (const [file, contained] of modules[kind])
    if (!finds(`find /usr/lib* -path "*/kamailio/modules/${file}" | grep -q .`))
      return `kamailio has no ${file} (Debian package ${contained})`
  return undefined
}

export interface RunningPeer {
  readonly name: string
  readonly sipPort: number
  /** Calls a second that it holds. */
  readonly warmRate: number
  /** All of its processes, by part. */
  readonly parts: () => readonly (readonly number[])[]
  /** How many calls its charging server has charged. */
  readonly charged: () => Promise<number>
  readonly stop: () => Promise<void>
}

export async function startKamailio(
  nodePorts: readonly number[],
  kind: PeerKind,
): Promise<RunningPeer> {
  const folder = mkdtempSync(join(tmpdir(), 'kamailio-'))
  const [sipPort, httpPort, redisPort] = [await freePort(), await freePort(), await freePort()]
  const isSameJob = kind === 'same-job'
  const nodes = nodePorts.map((port) => `1 sip:127.0.0.1:${port}\n`).join('')
  writeFileSync(join(folder, 'dispatcher.list'), nodes)
  const config = readFileSync(join(import.meta.dirname, 'kamailio.cfg'), 'utf8')
    .replaceAll('@SIP@', String(sipPort))
    .replaceAll('@HTTP@', String(httpPort))
    .replaceAll('@REDIS@', String(redisPort))
    .replaceAll('@RUN@', folder)
  const configFile = join(folder, 'kamailio.cfg')
  writeFileSync(configFile, config)

  const children: ChildProcess[] = []
  const stop = async (): Promise<void> => {
    for (const child of children.toReversed()) await end(child)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    if (isSameJob) children.push(await startRedis(redisPort, folder))
    children.push(await startCharging(isSameJob, httpPort, folder))
    children.push(await startProxy(configFile, folder, isSameJob))
  } catch (error) {
    await stop()
    throw error
  }
  return {
    name: isSameJob ? 'same job' : 'kamailio',
    sipPort,
    warmRate: isSameJob ? 200 : 500,
    parts: () => children.toReversed().map(({ pid = 0 }) => processTree(pid)),
    charged: async () => {
      const stats: unknown = await (await fetch(`http://127.0.0.1:${httpPort}/stats`)).json()
      return (stats as { readonly charged: number }).charged
    },
    stop,
  }
}

/** Its log reaches the disk within a second. */
async function startRedis(port: number, folder: string): Promise<ChildProcess> {
  const words = `--port ${port} --bind 127.0.0.1 --appendonly yes --appendfsync everysec`
  const child = spawn('redis-server', [...words.split(' '), '--save', '', '--dir', folder], {
    stdio: 'ignore',
  })
  await once(child, 'spawn')
  await eventually(async () => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect').finally(() => socket.destroy())
  })
  return child
}

async function startCharging(
  isDurable: boolean,
  port: number,
  folder: string,
): Promise<ChildProcess> {
  const file = isDurable ? 'durable-charging-server.mjs' : 'charging-server.mjs'
  const words = [join(import.meta.dirname, file), String(port), join(folder, 'charging.db')]
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  const failed = once(child, 'exit').then(() => {
    throw new Error(`${file} did not start`)
  })
  failed.catch(() => undefined)
  await Promise.race([once(child.stdout, 'data'), failed])
  return child
}

async function startProxy(
  configFile: string,
  folder: string,
  isSameJob: boolean,
): Promise<ChildProcess> {
  const memory = ['-x', 'fm', '-X', 'fm', '-m', '1024', '-M', '16']
  const defines = isSameJob ? ['-A', 'SAME_JOB'] : []
  const child = spawn(
    'kamailio',
    ['-f', configFile, '-DD', '-E', '-Y', folder, ...memory, ...defines],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let lastWords = ''
  child.stderr.on('data', (chunk: Buffer) => (lastWords = chunk.toString().slice(-500)))
  await once(child, 'spawn')
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  if (hasEnded(child)) throw new Error(`kamailio did not start: ${lastWords}`)
  return child
}

async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  await closed
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null
