/** What both processes of an upgrade do with the platform: hand it over, take it over, finish what is left. */
import type { Log } from '../../schema/contracts/log.ts'
import type { ActiveCall } from '../../schema/contracts/calls.ts'
import type { Schedule } from '../../schema/clock.ts'
import type { ControlServer } from '../../control/server.ts'
import type { ExternalCharging } from '../charging/external/external-charging.ts'
import { Ocs } from '../charging/ocs.ts'
import type { Config } from '../config.ts'
import type { Engine } from '../engine.ts'
import type { NodeShares } from '../shares/node-shares.ts'
import type { SocketSharing } from '../sip-server/index.ts'
import { UPGRADE_FORM, type Offer } from './messages.ts'
import { listeningOf, type OldProcess, UpgradeRefused } from './old-process.ts'
import { type NewProcess, Upgrade } from './upgrade.ts'

/** Takes and releases the lock of the database. */
export interface Lock {
  take(): void
  release(): void
}

export interface Parts {
  readonly config: Config
  readonly engine: Engine
  readonly charging: Ocs | ExternalCharging
  readonly lock: Lock
  /** Absent without other nodes. */
  readonly limits: NodeShares | undefined
  readonly log: Log
  readonly schedule: Schedule
  readonly releaseMemory?: () => void
}

/** In the new process, when everything is read: from its return on the engine may start. */
export async function takeOver(
  old: OldProcess,
  { engine, charging, lock, log, releaseMemory }: Parts,
): Promise<void> {
  // Afterwards calls would wait for it.
  releaseMemory?.()
  const { held } = await old.handOver()
  lock.take()
  await engine.reload()
  await engine.registrar.catchUp()
  if (charging instanceof Ocs) {
    await charging.holdElsewhere(held)
    old.onHeld((now) => void charging.holdElsewhere(now).catch(unread(log)))
  }
  sharingOf(engine).takeNew(old.pass)
  engine.media?.digits.passOn(old.passDigit)
}

const unread =
  (log: Log) =>
  (error: unknown): void =>
    log('error', 'billing: balances cannot be read', { error })

/** A request may be repeated for so long (64·T1, RFC 3261 §17). */
const COPIES_MS = 32_000

/** In the new process, when it serves. Resolves when the old one does not any more. */
export async function followOld(
  old: OldProcess,
  { engine, charging, limits, log, schedule }: Parts,
  { pid, version }: { readonly pid: number; readonly version: string },
): Promise<void> {
  old.onDatagram((datagram) => sharingOf(engine).receive(datagram))
  await old.serving(pid, version)
  schedule(() => sharingOf(engine).forgetCopies(), COPIES_MS)
  old.onDone(() => {
    sharingOf(engine).hold()
    engine.media?.digits.hold()
    sharingOf(engine).alone()
  })
  old.onEnd(() => {
    sharingOf(engine).alone()
    takeLeft({ engine, charging, limits, log }).catch((error: unknown) =>
      log('error', 'what the old process has left cannot be taken', { error }),
    )
  })
}

/** What arrives meanwhile is held. */
async function takeLeft({
  engine,
  charging,
  limits,
  log,
}: Pick<Parts, 'engine' | 'charging' | 'limits' | 'log'>): Promise<void> {
  try {
    const { saved, ...left } = await charging.leftBeside()
    const { restored, abandoned } = engine.passing.restore(saved)
    engine.routing.noteCalls()
    void limits?.alone()
    engine.finishLast()
    // Until then what they hold counts twice: no call gets money that is spent.
    if (charging instanceof Ocs) charging.holdElsewhere([]).catch(unread(log))
    const recoveredCalls = left.recoveredCalls + abandoned
    log('info', 'the old process has ended', { ...left, recoveredCalls, restoredCalls: restored })
  } finally {
    sharingOf(engine).release()
    engine.media?.digits.release()
  }
}

export interface UpgradeParts extends Parts {
  readonly control: ControlServer
  readonly pid: number
  readonly oldProcess?: OldProcess | undefined
  readonly startProgram: (descriptors: readonly number[], offer: Offer) => NewProcess
  /** What only the serving process does. */
  readonly stopDuties: () => void
}

const RETAKE_MS = 50

export function upgradeOf(parts: UpgradeParts): Upgrade {
  const { config, engine, charging, control, limits, lock, log, schedule, startProgram } = parts
  /** A new process that was killed keeps the lock for a moment. */
  const retake = (): void => {
    try {
      lock.take()
    } catch {
      schedule(retake, RETAKE_MS)
    }
  }
  const ocs = charging instanceof Ocs ? charging : undefined
  const held = () => ocs?.held() ?? []
  return new Upgrade({
    held,
    log,
    schedule,
    obstacle: () => obstacleTo(parts),
    // From its start on the new process has shares of its own.
    quiet: async () => {
      await Promise.all([ocs?.money?.beside(), limits?.beside()])
    },
    startProgram: () => {
      const descriptors = [...sharingOf(engine).descriptors(), ...control.descriptors()]
      return startProgram(descriptors, { form: UPGRADE_FORM, listening: listeningOf(config) })
    },
    writeAll: () => engine.registrar.flush(),
    handOver: (pass) => {
      lock.release()
      sharingOf(engine).keepOld(pass)
      return { held: held() }
    },
    takeBack: () => {
      sharingOf(engine).alone()
      retake()
    },
    alone: () => {
      void ocs?.money?.alone()
      void limits?.alone()
    },
    leave: () => {
      engine.dispatcher.stop()
      engine.trunks.leave()
      sharingOf(engine).leave()
      control.leave()
      parts.stopDuties()
    },
    receive: (datagram) => sharingOf(engine).receive(datagram),
    receiveDigit: (digit) => engine.media?.digits.take(digit),
  })
}

function obstacleTo({ config, engine, pid, oldProcess }: UpgradeParts): string | undefined {
  const instead = 'stop this process and start the new one'
  const { servers, listen } = config.drachtio
  if (servers !== undefined) return `DRACHTIO_URL is set, which keeps our dialogs: ${instead}`
  if (listen !== undefined)
    return `DRACHTIO_LISTEN is set, and its applications stay here: ${instead}`
  if (config.databasePath === ':memory:') return 'the database is in memory'
  if (pid === 1) return 'process 1 of a container ends the container: replace that'
  if (engine.calls.isDraining) return 'this process is about to stop'
  if (oldProcess?.hasEnded === false)
    return `the last upgrade is not finished: process ${oldProcess.pid} still has calls`
  return undefined
}

function sharingOf(engine: Engine): SocketSharing {
  const { sharing } = engine.passing
  if (sharing === undefined) throw new UpgradeRefused('there are no sockets to share')
  return sharing
}

const LOOK_MS = 250
/** Copies of the last requests are answered for so long: for most of the time in which they are repeated. */
const LINGER_MS = 4_000

/**
 * In the old process, when the new one serves: what it has begun comes to its end, or to a state in which the new one can
 * go on with it. A call on a stream connection keeps that until it ends. Resolves then, or at the bound.
 */
export function finishRest(
  { engine, schedule }: Pick<Parts, 'engine' | 'schedule'>,
  now: () => number,
  boundMs: number,
): Promise<void> {
  const deadline = now() + boundMs
  let settledSince: number | undefined
  return new Promise((resolve) => {
    const look = (): void => {
      const sharing = sharingOf(engine)
      sharing.closeIdleConnections()
      const isSettled = !sharing.hasStreams && engine.calls.list().every(isAnswered)
      settledSince = isSettled ? (settledSince ?? now()) : undefined
      const isOver = settledSince !== undefined && now() - settledSince >= LINGER_MS
      if (isOver || now() >= deadline) resolve()
      else schedule(look, LOOK_MS)
    }
    look()
  })
}

const isAnswered = ({ state }: ActiveCall): boolean => state === 'ACTIVE' || state === 'HELD'

/** In the old process, at its end: the journal has its calls, and the new one goes on with them. */
export async function passOn(
  { engine, charging, log, schedule }: Parts,
  upgrade: Upgrade,
  written: () => Promise<unknown>,
): Promise<void> {
  for (let tries = 0; tries < 5 && engine.passing.saveAll().length > 0; tries += 1)
    await new Promise<void>((resolve) => void schedule(resolve, LOOK_MS))
  await written()
  await upgrade.done()
  sharingOf(engine).silence()
  const left = engine.passing.saveAll()
  await written()
  for (const record of await charging.stop())
    log('error', 'a call record could not be written', { record })
  log('info', 'calls are passed on', { calls: engine.calls.size - left.length })
}
