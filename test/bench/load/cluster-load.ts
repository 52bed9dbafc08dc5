/**
 * Callers and callees of a cluster, on a machine of their own: each call begins at a node, is paid by a customer, rings, talks and is
 * hung up by its caller. What callers saw is written into a log. This side starts the process and tells it what to do.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster } from '../../support/cluster/cluster.ts'
import { SIP_PORT } from '../../support/cluster/cluster-node.ts'
import { eventually } from '../../support/waiting.ts'
import type { TopUpCounts, TopUpOptions } from './cluster-top-ups.ts'

/** Of callees. */
export const CALLEE_PORT = 5_070

/** What a load is like. */
export interface LoadPlan {
  readonly seed: number
  /** Numbers of the customers, who take turns at random. */
  readonly callers: readonly string[]
  /** Calls ring and talk for random times up to these. */
  readonly longestRingingMs: number
  readonly longestTalkMs: number
  /** Numbers of customers who do not hang up: their calls use up what they hold. */
  readonly talkative?: readonly string[]
  readonly topUps?: TopUpOptions
}

/** The same with where it is, for its process. */
export interface LoadOptions extends LoadPlan {
  readonly address: string
  /** SIP addresses of the nodes. */
  readonly nodes: readonly { readonly name: string; readonly host: string; readonly port: number }[]
  readonly logFile: string
}

export interface LoadCounts {
  readonly placed: number
  readonly answered: number
  /** Not over: begun, or answered and not hung up. */
  readonly live: number
  /** Had no final response in time. */
  readonly unanswered: number
  /** Answered calls whose BYE had no response in time. */
  readonly lostByes: number
  /** Answered calls that their node has hung up. */
  readonly hungUp: number
  /** By status. */
  readonly refused: Readonly<Record<string, number>>
  readonly topUps: TopUpCounts
}

export type LoadCommand =
  | { readonly kind: 'rate'; readonly callsPerSecond: number; readonly nodes?: readonly string[] }
  /** No further top-ups; those that are not confirmed are asked again. */
  | { readonly kind: 'finish' }
  | { readonly kind: 'end' }

/** What became of a call, as its caller saw it. */
export interface SeenCall {
  readonly what: 'answered' | 'unanswered' | 'refused'
  readonly callId: string
  readonly node: string
  readonly caller: string
  /** Status of a refusal. */
  readonly status: number
  /** Milliseconds UTC of the INVITE. */
  readonly placedAt: number
  /** Until then. */
  readonly tookMs: number
}

export class ClusterLoad {
  counts: LoadCounts = {
    placed: 0,
    answered: 0,
    live: 0,
    unanswered: 0,
    lostByes: 0,
    hungUp: 0,
    refused: {},
    topUps: { placed: 0, confirmed: 0, repeated: 0 },
  }
  readonly #child: ChildProcess
  readonly #logFile: string

  private constructor(child: ChildProcess, logFile: string) {
    this.#child = child
    this.#logFile = logFile
    child.on('message', (counts: LoadCounts) => {
      this.counts = counts
    })
  }

  /** @param logFolder where its log is written; unless given, it goes with the cluster. */
  static async start(
    { load: machine, nodes, folder }: Cluster,
    plan: LoadPlan,
    logFolder = folder,
  ): Promise<ClusterLoad> {
    const options: LoadOptions = {
      ...plan,
      address: machine.address,
      logFile: join(logFolder, 'calls.log'),
      nodes: nodes.map((node) => ({ name: node.name, host: node.machine.address, port: SIP_PORT })),
    }
    const [execPath, ...words] = machine.command(process.execPath, ...process.execArgv)
    const child = fork(join(import.meta.dirname, 'cluster-callers.ts'), [JSON.stringify(options)], {
      execPath,
      execArgv: words,
      detached: true,
    })
    const load = new ClusterLoad(child, options.logFile)
    await once(child, 'message')
    return load
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** @param nodes names of those where calls begin; unless given, all. */
  rate(callsPerSecond: number, nodes?: readonly string[]): void {
    this.#tell({ kind: 'rate', callsPerSecond, ...(nodes && { nodes }) })
  }

  /** Places no further calls and top-ups. Resolves when those that go on are over, or after `withinMs`. */
  async finish(withinMs: number): Promise<void> {
    this.rate(0)
    this.#tell({ kind: 'finish' })
    const isOver = (): void => {
      const { live, topUps } = this.counts
      if (live > 0 || topUps.confirmed < topUps.placed) throw new Error('calls go on')
    }
    await eventually(isOver, withinMs).catch(() => undefined)
  }

  /** Resolves when its log is whole. */
  async end(): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#tell({ kind: 'end' })
    await ended
  }

  /** Once it has ended. */
  seen(): readonly SeenCall[] {
    return readFileSync(this.#logFile, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const [what = '', callId = '', node = '', caller = '', ...numbers] = line.split(' ')
        const [status = 0, placedAt = 0, tookMs = 0] = numbers.map(Number)
        return { what: what as SeenCall['what'], callId, node, caller, status, placedAt, tookMs }
      })
  }

  #tell(command: LoadCommand): void {
    this.#child.send(command)
  }
}
