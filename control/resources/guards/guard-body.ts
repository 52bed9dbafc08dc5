/** What a spend guard is asked for with: by REST and by the tools. */
import { z } from 'zod'
import { guardActions, guardPeriods } from '../../../schema/contracts/spend-guards.ts'
import type { ExitCodes } from '../../../schema/rules/exit-codes.ts'
import { normalPrefix } from '../../../schema/rules/called-prefix.ts'
import { badRequest } from '../../http/api-error.ts'
import { money, reference } from '../../http/fields.ts'

const noPrefix = 'must be the first digits of called numbers, such as "1900", or "" for all numbers'
const prefix = z
  .string()
  .max(40)
  .refine((text) => normalPrefix(text) !== undefined, noPrefix)

/** One of `customer`, `extension` and `tenant` is given. */
export const guardBody = z.strictObject({
  customer: reference.optional().describe('Id or name: all calls that it pays.'),
  extension: reference.optional().describe('Id, or as in "101@acme.example".'),
  tenant: reference.optional().describe('Id or slug: all calls of its customers and phones.'),
  prefix: prefix.describe(
    'First digits of called numbers, in any spelling; "" for all. Leading 0, 00, + and exit codes are the same.',
  ),
  action: z.enum(guardActions).describe('block: no call. cap: calls may cost amount in all.'),
  amount: money().optional().describe('Of a cap, in the currency of the payer.'),
  per: z
    .enum(guardPeriods)
    .optional()
    .describe('Of a cap: the whole time (default), or each UTC day.'),
  end_live_calls: z.boolean().default(false).describe('True: ends answered calls within 5 s.'),
})

/** A prefix that was given, as it is stored. Throws 400 when it is an exit code of the installation and nothing more. */
export function storedPrefix(given: string, exitCodes: ExitCodes | undefined): string {
  const stored = normalPrefix(given, exitCodes)
  if (stored !== undefined) return stored
  throw badRequest('The prefix says nothing', [{ path: 'prefix', message: noPrefix }])
}

export type GuardBody = z.output<typeof guardBody>
