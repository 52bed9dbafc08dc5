/** Plan of a re-rating as a change: what it would do, how it begins, and how it is taken back. */
import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import { first, type Tables } from '../../../schema/sql/query.ts'
import type { Principal } from '../../auth/principal.ts'
import { requestScope } from '../../auth/tenants.ts'
import type { Plan } from '../../changes/change.ts'
import type { ChangeDeps, Json, RestorableKind } from '../../changes/kinds.ts'
import { plural, quoted } from '../../http/clean-text.ts'
import type { PreviewCounts, ReratingPreview } from './rerating-preview.ts'
import { recordsIn } from './rerated-calls.ts'
import {
  beginRerating,
  beginUndo,
  findRerating,
  type Meant,
  meantBy,
  type ReratingOrder,
} from './rerating-store.ts'
import type { Reratings } from './reratings.ts'

export interface ReratingUse extends ChangeDeps {
  readonly principal: Principal
  readonly reratings: Reratings
}

export interface ReratingOutcome extends Omit<PreviewCounts, 'looked' | 'changed'> {
  /** Null: it has not begun. */
  readonly rerating_id: number | null
  /** False: only the first records of the period were looked at. */
  readonly complete: boolean
  readonly records: number
  readonly changed_calls: number
  readonly currency: string
  readonly before_exact: string
  readonly after_exact: string
  readonly difference_exact: string
}

/** Stands for the id of a job that does not exist yet. */
const NEW = '0'

export async function planRerating(
  order: ReratingOrder,
  use: ReratingUse,
): Promise<Plan<ReratingOutcome>> {
  const { store, principal, reratings, randomBytes } = use
  const scope = requestScope(principal, use.now)
  const meant = await meantBy(store, order, scope)
  const preview = await reratings.preview(scope.tenantId, meant)
  const total = await recordsIn(store, meant)
  const outcome = outcomeOf(preview, meant)
  // Records beyond those that were looked at may change as well.
  const isNothing = preview.isComplete && preview.counts.changed === 0
  const state = isNothing ? null : stateOf({ ...meant, before_at: order.before })
  let begun: { readonly id: string; readonly after: Json } = { id: NEW, after: state }
  return {
    target: { kind: 'rerating', id: NEW },
    row: `rate_plan ${meant.rate_plan_id}`,
    before: null,
    after: state,
    undo: 'restores',
    effect: isNothing
      ? 'Nothing changes: the plan has the prices that these calls have.'
      : effectOf(order, preview, { ...meant, ...(await namesOf(store, meant)) }),
    affected: { calls: preview.counts.changed, customers: preview.customers.length },
    preview: { rerating_id: null, ...outcome },
    async apply() {
      const ref = randomBytes(16).toString('hex')
      const claim = reratings.claim()
      const id = await beginRerating(store, meant, { ref, scope, claim, total })
      begun = { id: String(id), after: (await reratingKind.read(String(id), use)) ?? state }
      return { rerating_id: id, ...outcome }
    },
    applied: () => begun,
  }
}

function outcomeOf(
  { counts, sums: { before, after }, isComplete }: ReratingPreview,
  { currency }: Meant,
): Omit<ReratingOutcome, 'rerating_id'> {
  const { looked, changed, ...others } = counts
  return {
    complete: isComplete,
    records: looked,
    changed_calls: changed,
    ...others,
    currency,
    before_exact: moneyToDecimal(before),
    after_exact: moneyToDecimal(after),
    difference_exact: moneyToDecimal(after - before),
  }
}

interface PartyNames {
  readonly customer: string | null
  readonly carrier: string | null
}

async function namesOf(store: Tables, meant: Meant): Promise<PartyNames> {
  const nameOf = async (table: 'customer' | 'carrier', id: number | null) => {
    if (id === null) return null
    const row = await first(store, store.db.selectFrom(table).select('name').where('id', '=', id))
    return row?.name ?? String(id)
  }
  return {
    customer: await nameOf('customer', meant.customer_id),
    carrier: await nameOf('carrier', meant.carrier_id),
  }
}

function effectOf(
  { from, before: to, prices }: ReratingOrder,
  { counts, sums: { before, after }, isComplete }: ReratingPreview,
  meant: Meant & PartyNames,
): string {
  const { kind, currency, prefix, customer, carrier } = meant
  const money = (micros: bigint): string => `${moneyToDecimal(micros)} ${currency}`
  const parts = [
    `Priced anew${isComplete ? '' : ', at least'}: ${plural(counts.changed, 'call')} that began ` +
      `from ${timeToText(from)} until before ${timeToText(to)}`,
    customer === null ? '' : ` of the customer ${quoted(customer)}`,
    carrier === null ? '' : ` by the carrier ${quoted(carrier)}`,
    prefix === '' ? '' : ` to numbers that begin with ${prefix}`,
    kind === 'sold' ? ', as they are sold' : ', as they are bought',
    ` by the rate plan ${quoted(meant.rate_plan)}, at the prices that it `,
    prices === 'now' ? 'has now' : 'now has for the time of each call',
    `: ${money(after)} instead of ${money(before)} all together.`,
    kind === 'sold' ? ' The wallets of the customers get the difference, or pay it.' : '',
  ]
  return parts.join('')
}

type ReratingState = Pick<
  Meant,
  'kind' | 'rate_plan_id' | 'from_at' | 'before_at' | 'customer_id' | 'carrier_id' | 'prefix'
> & { readonly priced_at: number | null }

const stateOf = (job: ReratingState): Json => ({
  kind: job.kind,
  rate_plan_id: job.rate_plan_id,
  from: timeToText(job.from_at),
  to: timeToText(job.before_at),
  customer_id: job.customer_id,
  carrier_id: job.carrier_id,
  prefix: job.prefix,
  prices: job.priced_at === null ? 'at_call' : 'now',
})

/** A job is there until its undo begins; how far it is makes no difference. */
export const reratingKind: RestorableKind = {
  isRow: true,
  async read(id, { store }) {
    const query = store.db.selectFrom('rerating').selectAll().where('id', '=', Number(id))
    const job = await first(store, query)
    return job === undefined || ['undoing', 'returning', 'undone'].includes(job.state)
      ? null
      : stateOf(job)
  },
  async restore(id, state, { store }, asker) {
    if (state !== null) throw new Error('a re-rating that was undone is made anew')
    await beginUndo(store, Number(id), asker)
  },
  uncreated: 'is undone: calls and wallets get again what they had',
  async admit(id, _, { tenantId }, { store }) {
    await findRerating(store, Number(id), { tenantId })
  },
  follow({ reratings }) {
    reratings?.wake()
    return Promise.resolve()
  },
}
