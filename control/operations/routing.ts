import { z } from 'zod'
import { data, type Operations } from '../http/openapi/operation.ts'
import { deleted, resourceOperations } from '../http/openapi/resource-operations.ts'
import {
  count,
  exampleMedia,
  exampleProbed,
  exampleTime,
  mediaView,
  moment,
  probed,
} from './shared.ts'

const transport = z.enum(['udp', 'tcp', 'tls'])

const node = z
  .strictObject({
    id: z.int(),
    host: z.string(),
    internal_port: z.int(),
    external_port: z.int(),
    weight: z.int().min(1).max(100),
    priority: z.int().min(1).max(100),
    description: z.string().nullable(),
    transport,
    is_enabled: z.boolean(),
    max_calls: count,
    operator_state: z.enum(['active', 'inactive']).describe('The state that an operator set.'),
    destination: z.string(),
    status: probed
      .extend({
        active_calls: count.describe(
          'Live calls on this node. A drained node can be stopped when this is 0.',
        ),
      })
      .nullable()
      .describe('Current health as the engine sees it. Null when the node is disabled.'),
  })
  .meta({ id: 'DispatcherNode' })

const dispatcherSet = z
  .strictObject({
    id: z.int(),
    set_id: z.int(),
    endpoint_name: z.string(),
    algorithm: z.literal([8, 4, 9, 6, 0]),
    tenant: z.string().nullable(),
    probe: z
      .strictObject({
        interval_ms: z.int().optional(),
        timeout_ms: z.int().optional(),
        fail_threshold: z.int().optional(),
        recover_threshold: z.int().optional(),
        ok_codes: z.array(z.string()).optional(),
      })
      .nullable(),
    voicemail_uri: z.string().nullable(),
    spy_uri: z.string().nullable(),
    ...mediaView,
    nodes: z.array(node),
    created_at: moment,
    updated_at: moment,
  })
  .meta({ id: 'DispatcherSet' })

const exampleNode = {
  id: 1,
  host: '10.0.0.11',
  internal_port: 5060,
  external_port: 5080,
  weight: 100,
  priority: 10,
  description: null,
  transport: 'udp',
  is_enabled: true,
  max_calls: 0,
  operator_state: 'active',
  destination: 'sip:10.0.0.11:5060;transport=udp',
  status: { ...exampleProbed, active_calls: 3 },
}

const nodes = '/api/v1/dispatcher/:id/nodes'
const dispatcher: Operations = {
  ...resourceOperations({
    path: '/api/v1/dispatcher',
    noun: 'dispatcher set',
    plural: 'dispatcher sets',
    tag: 'Dispatcher',
    view: dispatcherSet,
    nodes: 'all',
    example: {
      id: 1,
      set_id: 1,
      endpoint_name: 'pbx',
      algorithm: 8,
      tenant: null,
      probe: null,
      voicemail_uri: null,
      spy_uri: null,
      ...exampleMedia,
      nodes: [exampleNode],
      created_at: exampleTime,
      updated_at: exampleTime,
    },
    body: { endpoint_name: 'pbx', algorithm: 8, set_id: 1, nodes: [{ host: '10.0.0.11' }] },
    patch: { algorithm: 4 },
  }),
  'POST /api/v1/dispatcher/reload': {
    id: 'reloadDispatcher',
    tag: 'Dispatcher',
    summary: 'Reload sets and nodes from the database',
    answer: data(z.strictObject({ message: z.string(), status: z.literal('synchronized') }), {
      message: 'Dispatcher sets were reloaded',
      status: 'synchronized',
    }),
  },
  [`GET ${nodes}`]: {
    id: 'listDispatcherNodes',
    tag: 'Dispatcher',
    nodes: 'all',
    summary: 'List the nodes of a set',
    answer: data(z.array(node), [exampleNode]),
  },
  [`POST ${nodes}`]: {
    id: 'createDispatcherNode',
    tag: 'Dispatcher',
    summary: 'Add a node to a set',
    body: { host: '10.0.0.12', priority: 20 },
    answer: data(node, exampleNode, 201),
    refusals: [409],
  },
  [`GET ${nodes}/:nodeId`]: {
    id: 'getDispatcherNode',
    tag: 'Dispatcher',
    nodes: 'all',
    summary: 'Get a node',
    answer: data(node, exampleNode),
  },
  [`PATCH ${nodes}/:nodeId`]: {
    id: 'updateDispatcherNode',
    tag: 'Dispatcher',
    summary: 'Update a node',
    body: { weight: 50 },
    answer: data(node, exampleNode),
    refusals: [409],
  },
  [`DELETE ${nodes}/:nodeId`]: {
    id: 'deleteDispatcherNode',
    tag: 'Dispatcher',
    summary: 'Remove a node from its set',
    answer: data(deleted, { id: 1, deleted: true }),
    refusals: [409],
  },
  [`PUT ${nodes}/:nodeId/state`]: {
    id: 'setDispatcherNodeState',
    tag: 'Dispatcher',
    summary: "Set a node's state: drain it, or return it to service. Live calls continue.",
    body: { state: 'inactive' },
    answer: data(
      node
        .extend({
          state: z.enum(['active', 'probing', 'inactive']),
          change_id: z.string().nullable().describe('Null: it was so already.'),
        })
        .meta({ id: 'DispatcherNodeInState' }),
      { ...exampleNode, state: 'inactive', change_id: '3c1f2a52-8c0f-4a86-9f53-2d3f9d3f7c10' },
    ),
    refusals: [409],
  },
}

const numberRules = z.array(z.strictObject({ match: z.string(), replace: z.string() }))

const carrier = z
  .strictObject({
    id: z.int(),
    name: z.string(),
    tenant: z.string().nullable(),
    customer_id: z.int().nullable(),
    customer: z.string().nullable(),
    payer: z.enum(['customer', 'from_number']),
    is_active: z.boolean(),
    direction: z.enum(['in', 'out', 'both']),
    gateways: z.array(
      z.strictObject({
        id: z.int(),
        host: z.string(),
        port: z.int(),
        transport,
        netmask: z.int(),
        inbound: z.boolean(),
        outbound: z.boolean(),
        priority: z.int(),
        weight: z.int(),
        status: probed.nullable().describe('Null when the gateway is not probed.'),
      }),
    ),
    auth: z.strictObject({
      type: z.enum(['ip', 'digest', 'register']),
      username: z.string().nullable(),
      realm: z.string().nullable(),
      from_user: z.string().nullable(),
      from_domain: z.string().nullable(),
      expires: z.int().nullable(),
    }),
    caller_id: z.strictObject({
      mode: z.enum(['pass', 'fixed', 'pai']),
      value: z.string().nullable(),
    }),
    number_rules: z.strictObject({ in: numberRules, out: numberRules }),
    ...mediaView,
    media: z.enum(['bypass', 'prefer', 'anchor']),
    strip_headers: z.array(z.string()),
    max_calls: count,
    max_cps: count,
    rate_plan_id: z.int().nullable(),
    rate_plan: z.string().nullable(),
    inbound_set_id: z.int().nullable(),
    registration: z
      .enum(['registered', 'unregistered', 'registering', 'failed'])
      .nullable()
      .describe('Null when the carrier requires no registration.'),
    status: z.strictObject({
      is_usable: z.boolean(),
      active_calls: count,
      registration: z
        .strictObject({
          registrar: z.string(),
          expires_at: moment.nullable(),
          next_attempt_at: moment.nullable(),
          last_answer: z
            .strictObject({ at: moment, status: z.int(), reason: z.string() })
            .nullable(),
        })
        .nullable(),
    }),
    created_at: moment,
    updated_at: moment,
  })
  .meta({ id: 'Carrier' })

const exampleCall = '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11'
const testCall = z
  .strictObject({
    call_uuid: z.string(),
    status: z.literal('originating'),
    max_seconds: z.int().describe('The call is ended when it has been answered for so long.'),
  })
  .meta({ id: 'TestCall' })

const carriers = resourceOperations({
  path: '/api/v1/routing/carriers',
  noun: 'carrier',
  plural: 'carriers',
  tag: 'Routing',
  view: carrier,
  nodes: 'all',
  example: {
    id: 1,
    name: 'transit',
    tenant: null,
    customer_id: null,
    customer: null,
    payer: 'customer',
    is_active: true,
    direction: 'both',
    gateways: [
      {
        id: 1,
        host: '198.51.100.7',
        port: 5060,
        transport: 'udp',
        netmask: 32,
        inbound: true,
        outbound: true,
        priority: 10,
        weight: 100,
        status: exampleProbed,
      },
    ],
    auth: {
      type: 'ip',
      username: null,
      realm: null,
      from_user: null,
      from_domain: null,
      expires: null,
    },
    caller_id: { mode: 'pass', value: null },
    number_rules: { in: [], out: [{ match: '^00', replace: '' }] },
    ...exampleMedia,
    media: 'bypass',
    strip_headers: ['Diversion'],
    max_calls: 100,
    max_cps: 10,
    registration: null,
    rate_plan_id: null,
    rate_plan: null,
    inbound_set_id: 1,
    status: { is_usable: true, active_calls: 0, registration: null },
    created_at: exampleTime,
    updated_at: exampleTime,
  },
  body: { name: 'transit', gateways: [{ host: '198.51.100.7' }], max_calls: 100, max_cps: 10 },
  patch: { max_calls: 200 },
})

const outboundRoute = z
  .strictObject({
    id: z.int(),
    name: z.string(),
    tenant: z.string().nullable(),
    customer_id: z.int().nullable(),
    customer: z.string().nullable(),
    carrier_id: z.int().nullable(),
    carrier: z.string().nullable(),
    prefix: z.string(),
    priority: z.int(),
    weight: z.int(),
    mode: z.enum(['static', 'lcr', 'block']),
    strip: z.int(),
    prepend: z.string(),
    is_active: z.boolean(),
    emergency: z.boolean(),
    created_at: moment,
  })
  .meta({ id: 'OutboundRoute' })

const inboundRoute = z
  .strictObject({
    id: z.int(),
    name: z.string(),
    tenant: z.string().nullable(),
    carrier_id: z.int().nullable(),
    carrier: z.string().nullable(),
    prefix: z.string().nullable(),
    domain: z.string().nullable(),
    priority: z.int(),
    is_active: z.boolean(),
    set_id: z.int().nullable(),
    extension: z.string().nullable(),
    extension_domain: z.string().nullable(),
    agent: z.string().nullable(),
    created_at: moment,
  })
  .meta({ id: 'InboundRoute' })

export const routingOperations: Operations = {
  ...dispatcher,
  ...carriers,
  'POST /api/v1/routing/carriers/:id/test-call': {
    id: 'testCarrier',
    tag: 'Routing',
    summary: 'Ring an extension, then call a number through this carrier only, for 30 s at most',
    body: { source_extension: '100', destination_number: '4940200' },
    answer: data(testCall, { call_uuid: exampleCall, status: 'originating', max_seconds: 30 }, 201),
    refusals: [402, 409, 503],
  },
  ...resourceOperations({
    path: '/api/v1/outbound-routes',
    noun: 'outbound route',
    plural: 'outbound routes',
    tag: 'Routing',
    view: outboundRoute,
    example: {
      id: 1,
      name: 'Germany',
      tenant: null,
      customer_id: null,
      customer: null,
      carrier_id: 1,
      carrier: 'transit',
      prefix: '49',
      priority: 10,
      weight: 100,
      mode: 'static',
      strip: 0,
      prepend: '',
      is_active: true,
      emergency: false,
      created_at: exampleTime,
    },
    body: { name: 'Germany', prefix: '49', carrier: 'transit' },
    patch: { priority: 5 },
  }),
  ...resourceOperations({
    path: '/api/v1/inbound-routes',
    noun: 'inbound route',
    plural: 'inbound routes',
    tag: 'Routing',
    view: inboundRoute,
    example: {
      id: 1,
      name: 'main number',
      tenant: null,
      carrier_id: null,
      carrier: null,
      prefix: '4930',
      domain: null,
      priority: 10,
      is_active: true,
      set_id: 1,
      extension: null,
      extension_domain: null,
      agent: null,
      created_at: exampleTime,
    },
    body: { name: 'main number', prefix: '4930', set_id: 1 },
    patch: { is_active: false },
  }),
}
