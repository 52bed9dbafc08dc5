/** Tools for what leads calls: routes, and the phones that have registered. */
import { z } from 'zod'
import { timeToText } from '../../../schema/columns.ts'
import { all } from '../../../schema/sql/query.ts'
import { requestScope } from '../../auth/tenants.ts'
import { MAX_COUNTED } from '../../http/envelope.ts'
import { text } from '../../http/fields.ts'
import { contains, countOf } from '../../http/rows.ts'
import { inboundRoutes } from '../../resources/inbound-routes.ts'
import { distributions } from '../../../schema/contracts/field-values.ts'
import { outboundRoutes } from '../../resources/outbound-routes.ts'
import { storeOf } from '../../resources/resource.ts'
import { defineTool, endOfPage, MAX_ROWS, pageInput, pageOutput, sliceOf, time } from './tool.ts'

const nullable = z.string().nullable()

const route = z.object({
  id: z.int(),
  name: z.string(),
  tenant: nullable,
  prefix: nullable.describe('Start of the called number; empty or null: every number.'),
  priority: z.int().describe('A lower number is preferred.'),
  is_active: z.boolean(),
  carrier: nullable.describe('To which an outbound route sends; from which an inbound one takes.'),
  customer: nullable.optional().describe('Outbound: null: of every customer.'),
  mode: z.enum(['static', 'lcr', 'block']).optional().describe('lcr: the cheapest carrier first.'),
  weight: z.int().optional(),
  strip: z.int().optional(),
  prepend: z.string().optional(),
  emergency: z.boolean().optional(),
  distribution: z.enum(distributions).optional().describe('How equal routes share calls.'),
  quality: z
    .looseObject({})
    .nullable()
    .optional()
    .describe('Floors below which its carrier is tried last.'),
  domain: nullable.optional(),
  set_id: z.int().nullable().optional().describe('Inbound: the dispatcher set that gets the call.'),
  extension: nullable.optional(),
  agent: nullable.optional(),
})

export const listRoutes = defineTool({
  name: 'list_routes',
  title: 'List routes',
  description:
    'Lists outbound or inbound routes. Outbound: which carrier takes a number; inbound: ' +
    'which set, extension or agent. ' +
    'simulate_call tells which route a call would take.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['routes:read'],
  input: z.strictObject({
    direction: z.enum(['outbound', 'inbound']).default('outbound'),
    search: text(100).optional().describe('Part of the name or of the prefix.'),
    ...pageInput(MAX_ROWS, 50),
  }),
  output: z.object({ routes: z.array(route), ...pageOutput }),
  async run({ direction, search, ...page }, { store, principal, now }) {
    const scope = requestScope(principal, now)
    const slice = { ...sliceOf(page), search }
    const { rows, total } =
      direction === 'outbound'
        ? await storeOf(outboundRoutes, { store }).list(scope, slice)
        : await storeOf(inboundRoutes, { store }).list(scope, slice)
    return { routes: [...rows], ...endOfPage(page, rows.length, total) }
  },
})

export const listRegistrations = defineTool({
  name: 'list_registrations',
  title: 'List registrations',
  description:
    'Lists the phones that are registered. By extension: address, user agent, until when. ' +
    'list_trunks has the registrations with carriers.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['extensions:read'],
  input: z.strictObject({
    search: text(100).optional().describe('Part of the extension or of its display name.'),
    ...pageInput(MAX_ROWS, 50),
  }),
  output: z.object({
    registrations: z.array(
      z.object({
        extension: z.string(),
        domain: z.string(),
        contact: z.string(),
        user_agent: z.string(),
        source: z.string().describe('Transport and address of the last REGISTER.'),
        instance: z.string().describe('The instance of Tollgate that has the way to the phone.'),
        registered_at: time,
        expires_at: time,
      }),
    ),
    ...pageOutput,
  }),
  async run({ search, ...page }, { store, principal: { tenantId, domain }, now }) {
    const matching = store.db
      .selectFrom('binding')
      .innerJoin('extension', 'extension.id', 'binding.extension_id')
      .where('binding.expires_at', '>', now())
      .where(contains(['extension.extension', 'extension.display_name'], search))
      .$if(tenantId !== null, (own) => own.where('extension.tenant_id', '=', tenantId ?? 0))
      .$if(domain !== null, (own) => own.where('extension.domain', '=', domain ?? ''))
    const { limit, offset } = sliceOf(page)
    const rows = matching
      .select(['extension.extension', 'extension.domain', 'binding.contact', 'binding.user_agent'])
      .select(['binding.source_protocol', 'binding.source_address', 'binding.source_port'])
      .select(['binding.node', 'binding.registered_at', 'binding.expires_at'])
      .orderBy('extension.domain')
      .orderBy('extension.extension')
      .orderBy('binding.id')
      .limit(limit)
      .offset(offset)
    const total = await countOf(store, matching.select('binding.id').limit(MAX_COUNTED))
    const registrations = (await all(store, rows)).map(
      ({ source_protocol, source_address, source_port, node, ...row }) => ({
        ...row,
        source: `${source_protocol}/${source_address}:${source_port}`,
        instance: node,
        registered_at: timeToText(row.registered_at),
        expires_at: timeToText(row.expires_at),
      }),
    )
    return { registrations, ...endOfPage(page, registrations.length, total) }
  },
})
