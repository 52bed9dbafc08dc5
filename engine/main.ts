/** Where the outside enters: arguments, settings, time, randomness, signals, the terminal. */
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { text } from 'node:stream/consumers'
import { parseEnv } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { runCommandLine } from './commands/index.ts'
import type { CommandContext } from './commands/command.ts'
import { readPassedSockets } from './socket-activation.ts'
import type { Boot } from '../schema/clock.ts'
import { timeOrderedUuid } from '../schema/time-ordered-uuid.ts'

const settingsFile = readEnvironmentFile('.env')
const ownEnvironment = process.env
const environment = { ...settingsFile, ...ownEnvironment }

// The reader of a pipe may close it before the process ends.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

// Node.js has no other way to V8's collector; a V8 without it changes nothing but the memory at
// rest.
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('globalThis.gc') as ((how: object) => void) | undefined
setFlagsFromString('--no-expose-gc')

const { timeOrigin } = performance

/**
 * Bytes. The collection would keep calls waiting for more than 0.2 s, and half of a large heap is
 * not garbage.
 */
const MAX_HEAP_TO_RELEASE = 67_108_864

const world: CommandContext = {
  environment,
  pid: process.pid,
  hostName: hostname(),
  networkAddresses: () =>
    Object.values(networkInterfaces()).flatMap((each = []) =>
      each.flatMap(({ address, internal }) => (internal ? [] : [address])),
    ),
  settingsFile: Object.keys(settingsFile),
  settingsFromFile: Object.keys(settingsFile).filter((name) => !(name in ownEnvironment)),
  now: Date.now,
  // Whole milliseconds, as everything that is stored.
  steadyNow: () => Math.floor(timeOrigin + performance.now()),
  boot: readBoot(),
  random: Math.random,
  randomBytes,
  newUuid: () => timeOrderedUuid(randomUUID(), Date.now()),
  schedule: (work, delayMs) => {
    if (delayMs === 0) {
      // A timer waits for a millisecond at least.
      const immediate = setImmediate(work)
      return () => clearImmediate(immediate)
    }
    const timer = setTimeout(work, delayMs)
    return () => clearTimeout(timer)
  },
  print: (line) => process.stdout.write(`${line}\n`),
  complain: (line) => process.stderr.write(`${line}\n`),
  streams: { input: process.stdin, output: process.stdout },
  readInput: () => text(process.stdin),
  onStopSignal: (listener) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => listener(signal))
  },
  onReloadSignal: (listener) => {
    if (!process.stdin.isTTY) process.on('SIGHUP', listener)
  },
  passedSockets: () => readPassedSockets(process.env, process.pid),
  onCrash: (listener) => {
    const end = (error: unknown) => {
      listener(error)
      exit(1)
    }
    process.once('uncaughtException', end)
    process.once('unhandledRejection', end)
  },
  // The usual kind of collection leaves 20 MB more, and a call costs a tenth more from then on
  // (D133).
  releaseMemory: () => {
    if (process.memoryUsage().heapUsed < MAX_HEAP_TO_RELEASE)
      collectGarbage?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  },
}

exit(await runCommandLine(process.argv.slice(2), world))

/**
 * `process.exit` waits for V8's compiling threads. One that finds the heap full waits for a
 * collection by this thread, which would never come: the process would stand still for ever (D133).
 */
function exit(code: number): never {
  collectGarbage?.({ type: 'major', execution: 'sync', flavor: 'regular' })
  process.exit(code)
}

/** Undefined: not Linux. */
function readBoot(): Boot | undefined {
  const path = '/proc/sys/kernel/random/boot_id'
  if (!existsSync(path)) return undefined
  const sinceBootMs = Number(process.hrtime.bigint() / 1_000_000n)
  const at = Math.floor(timeOrigin + performance.now()) - sinceBootMs
  return { id: readFileSync(path, 'utf8').trim(), at }
}

/** The environment proper wins over the file. */
function readEnvironmentFile(path: string): Record<string, string | undefined> {
  return existsSync(path) ? parseEnv(readFileSync(path, 'utf8')) : {}
}
