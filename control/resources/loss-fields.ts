/** The fields of loss protection: the same on plans, customers and outbound routes (D402). */
import { z } from 'zod'
import { lossProtections } from '../../schema/contracts/tariff.ts'
import { leastMarginText, readLeastMargin } from '../../schema/rules/loss-protection.ts'
import { toFlag } from '../../schema/columns.ts'
import { first } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { RequestScope } from '../auth/tenants.ts'
import type { Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { badReference } from './references.ts'
import { updateRow } from './table-rows.ts'
import { refusePlatformOnly } from './tenancy.ts'

const leastMargin = z.string().transform((text, context) => {
  const least = readLeastMargin(text)
  if (least !== undefined) return leastMarginText(least)
  const message = 'must be an amount per minute such as "0.002", or a percentage such as "5%"'
  context.addIssue({ code: 'custom', message })
  return z.NEVER
})

/** @param wins which of the other rows it goes before. */
export const lossFields = (wins: string) => ({
  loss_protection: field.optional(field.oneOf(lossProtections), {
    about:
      'Calls that would leave less than `min_margin`: let through, told of, or refused. ' +
      `\`strict\`: refused also where the carrier's price is not known. ${wins}`,
  }),
  min_margin: field.optional(
    { body: leastMargin, view: z.string() },
    { about: 'Amount per minute ("0.002") or part of the price ("5%"). Null: 0.' },
  ),
})

interface LossBody {
  readonly loss_protection?: string | null | undefined
  readonly min_margin?: string | null | undefined
}

interface LossWriting {
  readonly body: LossBody
  readonly before: (LossBody & { readonly id: number }) | undefined
  readonly scope: RequestScope
  readonly deps: { readonly store: Store }
}

/**
 * The column that tells who has written them. Throws 400 for a margin that nothing protects, and
 * 403 when a tenant would change what the platform has set.
 */
export async function lossWriter(
  table: LossTable,
  { body, before, scope, deps: { store } }: LossWriting,
): Promise<Row> {
  if (body.loss_protection == null && body.min_margin != null)
    throw badReference('min_margin', 'needs loss_protection beside it')
  if (!changesProtection(body, before)) return {}
  if (scope.tenantId !== null && before?.loss_protection != null) {
    const isOwn = await isLossByTenant(store, table, before.id)
    refusePlatformOnly(scope, !isOwn, 'loss_protection')
  }
  return { is_loss_by_tenant: toFlag(scope.tenantId !== null) }
}

export const lossTables = ['rate_plan', 'customer', 'outbound_route'] as const
type LossTable = (typeof lossTables)[number]

/** Whether a tenant, not the platform, has written the loss protection of a row. */
export async function isLossByTenant(store: Store, table: LossTable, id: number): Promise<boolean> {
  const rows = store.db.selectFrom(table).select('is_loss_by_tenant').where('id', '=', id)
  return (await first(store, rows))?.is_loss_by_tenant === 1
}

export const setLossByTenant = (
  store: Store,
  table: LossTable,
  id: number,
  isByTenant: boolean,
): Promise<void> => updateRow(store, table, id, { is_loss_by_tenant: toFlag(isByTenant) })

/** Whether a write changes what is protected. */
export const changesProtection = (after: LossBody, before: LossBody | undefined): boolean =>
  (after.loss_protection ?? null) !== (before?.loss_protection ?? null) ||
  (after.min_margin ?? null) !== (before?.min_margin ?? null)
