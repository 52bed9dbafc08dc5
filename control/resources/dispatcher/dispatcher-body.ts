/** Request bodies of dispatcher sets and nodes (SPECIFICATION.md §2.6, §4.7 and §8). */
import { z } from 'zod'
import { renderSpyUri, type SpyValues } from '../../../schema/rules/spy-uri.ts'
import { mediaFields } from '../media-fields.ts'
import { host, limit, name, port, reference, sipUri, text } from '../../http/fields.ts'

/**
 * SPECIFICATION.md §2.6: failover, round robin, weight, random, Call-ID hash. HTML forms send text; a
 * pattern accepts it, because client generators would give 8 and "8" of two enums the same name.
 */
const algorithms =
  'must be 8 (failover), 4 (round robin), 9 (weight), 6 (random) or 0 (Call-ID hash)'
const algorithm = z
  .union([z.literal([8, 4, 9, 6, 0]), z.string().regex(/^[84960]$/, algorithms)], {
    error: algorithms,
  })
  .transform(Number)

export const transport = z.enum(['udp', 'tcp', 'tls'])

/** `404`, `"404"` or `"200-299"`: final responses to OPTIONS that mean "up". */
const okCode = z
  .union([z.int(), z.string()], { error: 'must be a status or a range of them' })
  .transform(String)
  .refine((code) => {
    const [, from, to = from] = /^([2-6]\d\d)(?:-([2-6]\d\d))?$/.exec(code) ?? []
    return from !== undefined && Number(from) <= Number(to)
  }, 'must be a final SIP status such as 404, or a range such as "200-299"')

/** Absent values default to the settings of the process (`PROBE_…`). */
const probe = z
  .strictObject({
    interval_ms: z.int().min(100).max(60_000).optional(),
    timeout_ms: z.int().min(50).max(30_000).optional(),
    fail_threshold: z.int().min(1).max(20).optional(),
    recover_threshold: z.int().min(1).max(20).optional(),
    ok_codes: z.array(okCode).min(1).max(20).optional(),
  })
  .refine(
    ({ interval_ms, timeout_ms }) =>
      interval_ms === undefined || timeout_ms === undefined || timeout_ms <= interval_ms,
    { path: ['timeout_ms'], message: 'must not exceed interval_ms' },
  )

export const nodeBody = z.strictObject({
  host,
  internal_port: port.default(5060).describe('Port to which calls and probes are sent.'),
  external_port: port
    .default(5080)
    .describe('A second port from which calls of the node are accepted.'),
  weight: z.int().min(1).max(100).default(100),
  priority: z.int().min(1).max(100).default(10).describe('A lower number is preferred.'),
  description: text(100).nullish(),
  transport: transport.default('udp'),
  is_enabled: z.boolean().default(true),
  max_calls: limit.default(0).describe('0: unlimited.'),
})

export type NodeBody = z.output<typeof nodeBody>

const nodes = z
  .array(nodeBody)
  .min(1)
  .max(100)
  .superRefine((members, context) => {
    const seen = new Set<string>()
    for (const [index, node] of members.entries()) {
      const key = nodeKey(node)
      if (seen.has(key))
        context.addIssue({
          code: 'custom',
          path: [index, 'host'],
          message: 'is already in the set with the same port and transport',
        })
      seen.add(key)
    }
  })

/** Once the placeholders are replaced, it must be a SIP URI. */
const spyUri = z
  .string()
  .max(300)
  .refine((template) => template.includes('{call_uuid}'), 'must contain {call_uuid}')
  .refine(
    (template) => sipUri.safeParse(renderSpyUri(template, exampleSpy)).success,
    'must be a SIP URI such as "sip:spy-{mode}-{call_uuid}@{node}", with no other placeholder but {side}',
  )

const exampleSpy: SpyValues = {
  call_uuid: '00000000-0000-4000-8000-000000000001',
  mode: 'listen',
  side: 'caller',
  node: '192.0.2.1:5060',
}

export const dispatcherBody = z.strictObject({
  endpoint_name: name,
  algorithm,
  set_id: z.int().min(1).max(65_535).optional().describe('Defaults to the lowest free number.'),
  tenant: reference.nullish(),
  nodes,
  probe: probe.nullish(),
  voicemail_uri: sipUri
    .nullish()
    .describe(
      'Receives calls that no phone of the tenant answers. The tenant’s set with the lowest number counts.',
    ),
  spy_uri: spyUri
    .nullish()
    .describe(
      'SIP URI at which a supervisor joins a call. Must contain {call_uuid}; may contain {mode}, {side} and {node}.',
    ),
  ...mediaFields,
})

export type DispatcherBody = z.output<typeof dispatcherBody>

/** Identifies a node across an update: the destination of its calls. */
export const nodeKey = (node: Pick<NodeBody, 'host' | 'internal_port' | 'transport'>): string =>
  `${node.host} ${node.internal_port} ${node.transport}`
