/**
 * Routing webhooks: receivers that answer `onInvite` by HTTP. A call asks the one of its carrier,
 * else of the dispatcher set of its node, else of its tenant, else of the platform.
 */
import { isDeepStrictEqual } from 'node:util'
import type {
  DecidingHook,
  HookAnswer,
  HookArgument,
  HookCall,
  HookDecisions,
  HookName,
  HookPort,
  HookTrouble,
} from '../../../schema/contracts/hooks.ts'
import type {
  RoutingWebhooksPort,
  RoutingWebhookStatus,
  RoutingWebhookTest,
} from '../../../schema/contracts/routing-webhooks.ts'
import { hostOf } from '../../../schema/net/http-target.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import { AskedWebhook, type AskedWebhookDeps } from './asked-webhook.ts'
import { RequestsAtOnce } from './requests-at-once.ts'
import type { RoutingWebhookRecord } from './routing-webhook-store.ts'

export interface RoutingWebhooksDeps extends Omit<AskedWebhookDeps, 'atOnce'> {
  readonly load: () => Promise<readonly RoutingWebhookRecord[]>
  /** Number of the set of a node; undefined: it is in none. */
  readonly setOfNode: (nodeId: number) => number | undefined
  /** Tells the names that will be looked up. */
  readonly watch: (hosts: readonly string[]) => void
}

export class RoutingWebhooks implements HookPort, RoutingWebhooksPort {
  readonly #deps: RoutingWebhooksDeps
  readonly #atOnce = new RequestsAtOnce()
  readonly #reloads = new OneAtATime(() => this.#load())
  #all: ReadonlyMap<number, AskedWebhook> = new Map()
  #ofCarriers: ReadonlyMap<number | null, AskedWebhook> = new Map()
  #ofSets: ReadonlyMap<number | null, AskedWebhook> = new Map()
  #ofTenants: ReadonlyMap<number | null, AskedWebhook> = new Map()
  /** Figures of webhooks that have been changed or removed. */
  #past = noFigures

  constructor(deps: RoutingWebhooksDeps) {
    this.#deps = deps
  }

  reload(): Promise<void> {
    return this.#reloads.request()
  }

  stop(): void {
    for (const webhook of this.#all.values()) webhook.close()
  }

  has(hook: HookName): boolean {
    return (
      hook === 'onInvite' && this.#ofCarriers.size + this.#ofSets.size + this.#ofTenants.size > 0
    )
  }

  async ask<H extends DecidingHook>(
    hook: H,
    argument: HookArgument<H>,
  ): Promise<HookAnswer<HookDecisions[H]>> {
    const call: HookCall | undefined = hook === 'onInvite' ? (argument as HookCall) : undefined
    const webhook = call && this.#webhookFor(call)
    return call === undefined || webhook === undefined ? { kind: 'nothing' } : webhook.ask(call)
  }

  unusable(_hook: DecidingHook, by: string, why: string): void {
    const webhook = [...this.#all.values()].find(({ name }) => name === by)
    webhook?.unusable(why)
  }

  tell(): void {
    // A webhook of events tells what has happened.
  }

  statusOf(id: number): RoutingWebhookStatus | undefined {
    const webhook = this.#all.get(id)
    return webhook?.record.isEnabled === true ? webhook.status : undefined
  }

  async test(
    id: number,
    { from, to }: Pick<HookCall, 'from' | 'to'>,
  ): Promise<RoutingWebhookTest | undefined> {
    const webhook = this.#all.get(id)
    if (webhook === undefined) return undefined
    const { tenantId } = webhook.record
    const source = { kind: 'api', address: '', port: 0, id: null, name: null, tenantId } as const
    const callUuid = this.#deps.newUuid()
    const nobody = { fromName: null, domain: '', headers: {} }
    return webhook.test({ callUuid, callId: callUuid, from, to, source, tenantId, ...nobody })
  }

  /** Failures of those in use, for people. */
  troubles(): readonly HookTrouble[] {
    return [...this.#all.values()].flatMap(({ record, trouble }) =>
      record.isEnabled && trouble !== undefined ? [trouble] : [],
    )
  }

  /** Totals since the start of the process. */
  telemetry(): Readonly<Record<string, number>> {
    const sums = [...this.#all.values()].reduce((sum, { status }) => plus(sum, status), this.#past)
    return {
      routing_webhook_calls_total: sums.calls,
      routing_webhook_requests_total: sums.requests,
      routing_webhook_failures_total: sums.failed,
      routing_webhook_timeouts_total: sums.timeouts,
      routing_webhook_cache_hits_total: sums.cacheHits,
      routing_webhook_ms_total: Math.round(sums.totalMs),
    }
  }

  /** A tenant's webhook decides about calls of that tenant alone. */
  #webhookFor(call: HookCall): AskedWebhook | undefined {
    const { source } = call
    const tenantId = call.tenantId ?? source.tenantId
    const mine = (webhook: AskedWebhook | undefined): AskedWebhook | undefined => {
      const owner = webhook?.record.tenantId
      return owner === null || owner === tenantId ? webhook : undefined
    }
    return (
      (source.kind === 'carrier' && mine(this.#ofCarriers.get(source.id))) ||
      (source.kind === 'node' && mine(this.#ofSets.get(this.#setOf(source.id)))) ||
      (tenantId !== null && this.#ofTenants.get(tenantId)) ||
      this.#ofTenants.get(null)
    )
  }

  #setOf(nodeId: number | null): number | null {
    return (nodeId === null ? undefined : this.#deps.setOfNode(nodeId)) ?? NO_SET
  }

  /** Those that are as before keep their connections, answers and figures. */
  async #load(): Promise<void> {
    const before = this.#all
    const records = await this.#deps.load()
    const kept = (record: RoutingWebhookRecord): AskedWebhook | undefined => {
      const known = before.get(record.id)
      return known && isDeepStrictEqual(known.record, record) ? known : undefined
    }
    const deps = { ...this.#deps, atOnce: this.#atOnce }
    const webhooks = records.map((record) => kept(record) ?? new AskedWebhook(record, deps))
    this.#all = new Map(webhooks.map((webhook) => [webhook.record.id, webhook]))
    this.#sort(webhooks.filter(({ record }) => record.isEnabled))
    this.#deps.watch(webhooks.map(({ record }) => hostOf(new URL(record.url))))
    for (const webhook of before.values())
      if (this.#all.get(webhook.record.id) !== webhook) {
        this.#past = plus(this.#past, webhook.status)
        webhook.close()
      }
  }

  #sort(webhooks: readonly AskedWebhook[]): void {
    const by = (idOf: (record: RoutingWebhookRecord) => number | null | undefined) =>
      new Map(
        webhooks.flatMap((webhook): [number | null, AskedWebhook][] => {
          const id = idOf(webhook.record)
          return id === undefined ? [] : [[id, webhook]]
        }),
      )
    this.#ofCarriers = by(({ carrierId }) => carrierId ?? undefined)
    this.#ofSets = by(({ setId }) => setId ?? undefined)
    this.#ofTenants = by(({ carrierId, setId, tenantId }) =>
      carrierId === null && setId === null ? tenantId : undefined,
    )
  }
}

/** No set has this number. */
const NO_SET = 0

type Figures = Pick<
  RoutingWebhookStatus,
  'calls' | 'requests' | 'failed' | 'timeouts' | 'cacheHits' | 'totalMs'
>

const noFigures: Figures = {
  calls: 0,
  requests: 0,
  failed: 0,
  timeouts: 0,
  cacheHits: 0,
  totalMs: 0,
}

const plus = (one: Figures, other: Figures): Figures => ({
  calls: one.calls + other.calls,
  requests: one.requests + other.requests,
  failed: one.failed + other.failed,
  timeouts: one.timeouts + other.timeouts,
  cacheHits: one.cacheHits + other.cacheHits,
  totalMs: one.totalMs + other.totalMs,
})
