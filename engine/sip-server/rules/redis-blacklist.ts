/** A blacklist in a Redis set, read again and again. The client, @redis/client, is an optional package. */
import { errorCode, OptionError } from '../errors.ts'
import type { Machine } from '../machine.ts'
import type { Log } from '../options.ts'
import { isDenied, readDenied, takeDenied, type Blacklist } from './blacklist.ts'

interface Place {
  readonly host: string
  readonly port: number
}

export interface RedisSet {
  /** Of the server; or of sentinels, of which one knows where the replicas of `master` are. */
  readonly places: readonly Place[]
  /** Undefined: the places are those of servers. */
  readonly master: string | undefined
  readonly key: string
  readonly password: string | undefined
  readonly refreshSeconds: number
}

/** A connection: what a command answers, and its end. */
export interface RedisLink {
  readonly send: (words: readonly string[]) => Promise<unknown>
  readonly close: () => void
}

/** When the signal aborts, the connection is closed, be it open yet or not. */
export type OpenRedis = (
  place: Place,
  password: string | undefined,
  signal: AbortSignal,
) => Promise<RedisLink>

/** For each server: to connect, to sign in and to answer. Milliseconds. */
const readingMs = 10_000
/** After a reading that failed, as drachtio-server does. Seconds. */
const retrySeconds = 60

/** @throws OptionError when the client is not installed */
export async function loadRedis(): Promise<OpenRedis> {
  const client = await import('@redis/client').catch((cause: unknown) => {
    throw new OptionError(
      'a blacklist in Redis needs the package @redis/client: npm install @redis/client',
      { cause },
    )
  })
  return async ({ host, port }, password, signal) => {
    const socket = { host, port, connectTimeout: readingMs, reconnectStrategy: false } as const
    const link = client.createClient({ socket, ...(password !== undefined && { password }) })
    // Each failure is that of a command, too.
    link.on('error', () => undefined)
    const close = (): void => {
      if (link.isOpen) link.destroy()
    }
    signal.addEventListener('abort', close)
    await link.connect()
    return { send: (words) => link.sendCommand([...words]), close }
  }
}

/** What was read last holds as long as nothing newer can be read; before the first reading none is denied. */
export function watchRedisBlacklist(
  set: RedisSet,
  open: OpenRedis,
  log: Log,
  schedule: Machine['schedule'],
): Blacklist {
  let denied = readDenied('')
  let cancel = (): void => undefined
  const stopping = new AbortController()
  const how = { open, schedule, stopping: stopping.signal }
  const read = async (): Promise<void> => {
    const { members, reason } = await membersOf(set, how)
    if (stopping.signal.aborted) return
    if (members === undefined)
      log('error', 'the blacklist in Redis cannot be read', { key: set.key, reason })
    else denied = takeDenied(members.join('\n'), { key: set.key }, log)
    const seconds =
      members === undefined ? Math.min(retrySeconds, set.refreshSeconds) : set.refreshSeconds
    cancel()
    cancel = schedule(() => void read(), seconds * 1_000)
  }
  void read()
  return {
    denies: (address) => isDenied(denied, address),
    refresh: () => void read(),
    stop: () => {
      stopping.abort()
      cancel()
    },
  }
}

interface How {
  readonly open: OpenRedis
  readonly schedule: Machine['schedule']
  readonly stopping: AbortSignal
}

interface Outcome {
  readonly members?: readonly string[]
  /** Why there are none. */
  readonly reason?: string
}

/** Those of the first server that answers. */
async function membersOf({ places, master, password, key }: RedisSet, how: How): Promise<Outcome> {
  let reason = 'no server is known'
  const failed = (error: unknown): undefined => {
    reason = errorCode(error)
  }
  for (const place of places) {
    const servers =
      master === undefined ? [place] : await serversOf(master, place, how).catch(failed)
    for (const server of servers ?? []) {
      const members = await asked(server, password, how, ['SMEMBERS', key]).then(textsIn, failed)
      if (members !== undefined) return { members }
    }
  }
  return { reason }
}

/** What a sentinel knows: the replicas, or else the master itself. */
async function serversOf(master: string, sentinel: Place, how: How): Promise<readonly Place[]> {
  const ask = (...words: string[]) => asked(sentinel, undefined, how, ['SENTINEL', ...words])
  const replicas = listIn(await ask('REPLICAS', master)).flatMap((entry) =>
    placeIn(fieldsIn(entry)),
  )
  if (replicas.length > 0) return replicas
  const [ip = '', port = ''] = textsIn(await ask('GET-MASTER-ADDR-BY-NAME', master))
  return placeIn(new Map(Object.entries({ ip, port })))
}

async function asked(
  place: Place,
  password: string | undefined,
  { open, schedule, stopping }: How,
  words: readonly string[],
): Promise<unknown> {
  stopping.throwIfAborted()
  const late = new AbortController()
  const signal = AbortSignal.any([stopping, late.signal])
  // The client may never settle what it was asked for: we do not wait for it.
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('no answer in time')))
  })
  const cancel = schedule(() => late.abort(), readingMs)
  try {
    return await Promise.race([answerOf(open(place, password, signal), words), aborted])
  } finally {
    cancel()
  }
}

async function answerOf(opening: Promise<RedisLink>, words: readonly string[]): Promise<unknown> {
  const link = await opening
  try {
    return await link.send(words)
  } finally {
    link.close()
  }
}

const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const textsIn = (value: unknown): readonly string[] =>
  listIn(value).filter((each) => typeof each === 'string')

/** A list of names and values, or an object of them: so the versions of the protocol differ. */
function fieldsIn(entry: unknown): ReadonlyMap<string, string> {
  if (Array.isArray(entry)) {
    const texts = textsIn(entry)
    return new Map(texts.flatMap((name, at) => (at % 2 === 0 ? [[name, texts[at + 1] ?? '']] : [])))
  }
  const fields: readonly [string, unknown][] =
    typeof entry === 'object' && entry !== null ? Object.entries(entry) : []
  return new Map(
    fields.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )
}

function placeIn(fields: ReadonlyMap<string, string>): readonly Place[] {
  const host = fields.get('ip') ?? ''
  const port = Number(fields.get('port'))
  return host !== '' && port > 0 && port < 65_536 ? [{ host, port }] : []
}
