/**
 * Tells the service manager that started the process (systemd, by `NOTIFY_SOCKET`) how it is:
 * sd_notify(3). Node.js has no Unix datagrams, so systemd-notify sends them, started by one small
 * shell (D138).
 */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Log } from '../../schema/contracts/log.ts'
import type { Environment } from '../config.ts'
import type { CommandContext } from './command.ts'

export interface ServiceManager {
  /** The start waits, and says so again within this time. */
  starting(status: string, withinMs: number): void
  /**
   * Everything is served. From now on the watchdog, if there is one, is notified while the event
   * loop runs.
   */
  ready(): void
  /** Settings are read again; `ready` follows. */
  reloading(): void
  /** The end begins, and takes this long at the most. */
  stopping(withinMs: number): void
}

/** Does nothing without a service manager. `status`: one line about the present state. */
export function serviceManager(
  { environment, schedule, pid }: Pick<CommandContext, 'environment' | 'schedule' | 'pid'>,
  log: Log,
  status: () => string,
): ServiceManager {
  if ((environment['NOTIFY_SOCKET'] ?? '') === '')
    return { starting: nothing, ready: nothing, reloading: nothing, stopping: nothing }
  const watchdogMs = watchdogIntervalMs(environment)
  const messenger = new Messenger(environment, log)
  let stopWatchdog: (() => void) | undefined
  const watch = (): void => {
    if (watchdogMs === undefined) return
    messenger.send(['WATCHDOG=1', `STATUS=${status()}`])
    stopWatchdog = schedule(watch, watchdogMs)
  }
  return {
    starting: (text, withinMs) =>
      messenger.send([`STATUS=${text}`, `EXTEND_TIMEOUT_USEC=${withinMs * 1_000}`]),
    ready: () => {
      messenger.send(['READY=1', `MAINPID=${pid}`, `STATUS=${status()}`])
      if (stopWatchdog === undefined) watch()
    },
    reloading: () => messenger.send(['RELOADING=1']),
    stopping: (withinMs) =>
      messenger.send(['STOPPING=1', `EXTEND_TIMEOUT_USEC=${withinMs * 1_000}`]),
  }
}

const nothing = (): void => undefined

/** Half of what the service manager waits at the most; undefined: it does not watch. */
function watchdogIntervalMs(environment: Environment): number | undefined {
  const micros = Number(environment['WATCHDOG_USEC'])
  return micros > 0 ? Math.max(1, Math.floor(micros / 2_000)) : undefined
}

/** One message a line, its variables apart by tabs. It ends with its standard input. */
const script = `IFS='\t'; set -f; while read -r variables; do systemd-notify $variables; done`

class Messenger {
  readonly #environment: Environment
  readonly #log: Log
  #shell: ChildProcess | undefined
  #isFailing = false

  constructor(environment: Environment, log: Log) {
    this.#environment = environment
    this.#log = log
  }

  send(variables: readonly string[]): void {
    this.#shell ??= this.#start()
    this.#shell.stdin?.write(`${variables.join('\t')}\n`)
  }

  #start(): ChildProcess {
    const { PATH, NOTIFY_SOCKET } = this.#environment
    const shell = spawn('/bin/sh', ['-c', script], {
      env: { PATH, NOTIFY_SOCKET },
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    const end = (): void => {
      if (this.#shell === shell) this.#shell = undefined
    }
    shell.once('exit', end)
    shell.once('error', (error) => {
      end()
      this.#complain(error.message)
    })
    shell.stdin.on('error', nothing)
    shell.stderr.on('data', (text: Buffer) => this.#complain(text.toString().trim()))
    // The process may end, whatever the shell does.
    shell.unref()
    return shell
  }

  #complain(reason: string): void {
    if (!this.#isFailing)
      this.#log('error', 'systemd cannot be notified; is systemd-notify installed?', { reason })
    this.#isFailing = true
  }
}
