import { z } from 'zod'
import { data, type Operations } from '../http/openapi/operation.ts'
import { deleted, resourceOperations } from '../http/openapi/resource-operations.ts'
import { liveCarrierView } from '../resources/carriers.ts'
import { liveNodeView, liveSetView } from '../resources/dispatcher/dispatcher-sets.ts'
import { inboundRoutes } from '../resources/inbound-routes.ts'
import { outboundRoutes } from '../resources/outbound-routes.ts'
import { exampleMedia, exampleProbed, exampleTime } from '../http/view-fields.ts'

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
    view: liveSetView,
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
    answer: data(z.array(liveNodeView), [exampleNode]),
  },
  [`POST ${nodes}`]: {
    id: 'createDispatcherNode',
    tag: 'Dispatcher',
    summary: 'Add a node to a set',
    body: { host: '10.0.0.12', priority: 20 },
    answer: data(liveNodeView, exampleNode, 201),
    refusals: [409],
  },
  [`GET ${nodes}/:nodeId`]: {
    id: 'getDispatcherNode',
    tag: 'Dispatcher',
    nodes: 'all',
    summary: 'Get a node',
    answer: data(liveNodeView, exampleNode),
  },
  [`PATCH ${nodes}/:nodeId`]: {
    id: 'updateDispatcherNode',
    tag: 'Dispatcher',
    summary: 'Update a node',
    body: { weight: 50 },
    answer: data(liveNodeView, exampleNode),
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
      liveNodeView
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
  view: liveCarrierView,
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
    view: outboundRoutes.view,
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
    view: inboundRoutes.view,
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
