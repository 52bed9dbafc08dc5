/**
 * How a carrier is made, changed and deleted: its addresses, its registration, who pays, what it
 * costs.
 */
import type { Carrier } from '../api/views.ts'
import type { ScreenNoun, Use } from '../parts/resource-screen.tsx'
import type { FormRow } from '../parts/schema-fields.ts'
import { mediaForm } from './media-form.ts'

const use = (path: string, one: string): Use<Carrier & { readonly id: number }> => ({
  path,
  one,
  many: `${one}s`,
  isUse: (route, { id }) => route['carrier_id'] === id,
})

export const carrierNoun: ScreenNoun<Carrier> = {
  one: 'carrier',
  many: 'Carriers',
  scope: 'carriers',
  about: '',
  effect: 'Calls from its gateways are refused, and none goes to them. Calls in progress go on.',
  nameOf: ({ name }) => name,
  uses: [use('/outbound-routes', 'outbound route'), use('/inbound-routes', 'inbound route')],
  columns: [],
  form: {
    path: '/routing/carriers',
    names: [
      'name',
      'direction',
      'auth.type',
      'auth.username',
      'auth.password',
      'auth.realm',
      'gateways',
      'payer',
      'customer',
      'inbound_set',
      'rate_plan',
    ],
    more: [
      'tenant',
      'is_active',
      'auth.from_user',
      'auth.from_domain',
      'auth.expires',
      'max_calls',
      'max_cps',
      'caller_id.mode',
      'caller_id.value',
      'stir.sign',
      'stir.verify',
      ...mediaForm.names,
      'strip_headers',
      'preset',
      'number_rules.in',
      'number_rules.out',
    ],
    rows: {
      gateways: { one: 'gateway', names: ['host', 'port', 'transport'] },
      'number_rules.in': { one: 'rule', names: ['match', 'replace'] },
      'number_rules.out': { one: 'rule', names: ['match', 'replace'] },
    },
    when: {
      'auth.username': ['auth.type', 'digest', 'register'],
      'auth.password': ['auth.type', 'digest', 'register'],
      'auth.realm': ['auth.type', 'digest', 'register'],
      'auth.expires': ['auth.type', 'register'],
      payer: ['direction', 'in', 'both'],
      customer: ['payer', 'customer'],
      inbound_set: ['direction', 'in', 'both'],
      'stir.sign': ['direction', 'out', 'both'],
      'stir.verify': ['direction', 'in', 'both'],
      'caller_id.value': ['caller_id.mode', 'fixed'],
    },
    labels: {
      ...mediaForm.labels,
      direction: 'Calls',
      'auth.type': 'The carrier knows us',
      'auth.username': 'User name',
      'auth.password': 'Password',
      'auth.realm': 'Realm',
      'auth.from_user': 'User in From',
      'auth.from_domain': 'Domain in From',
      'auth.expires': 'Seconds a registration lasts',
      payer: 'Calls from it are paid by',
      customer: 'Customer',
      inbound_set: 'Calls from it go to the set',
      rate_plan: 'Its prices',
      is_active: 'In use',
      max_calls: 'Calls at once, at most',
      max_cps: 'Calls per second, at most',
      'caller_id.mode': 'Caller number',
      'caller_id.value': 'This number',
      'stir.sign': 'Sign calls to it (STIR/SHAKEN)',
      'stir.verify': 'Signatures of calls from it',
      preset: 'Kind of service',
      'number_rules.in': 'Rewriting numbers of calls from it',
      'number_rules.out': 'Rewriting numbers of calls to it',
      'gateways.host': 'Address',
      'gateways.netmask': 'Network prefix length',
      'gateways.inbound': 'Takes calls from it',
      'gateways.outbound': 'Sends calls to it',
      'number_rules.in.match': 'Pattern',
      'number_rules.in.replace': 'Replacement',
      'number_rules.out.match': 'Pattern',
      'number_rules.out.replace': 'Replacement',
    },
    hints: {
      ...mediaForm.hints,
      'auth.type': '',
      'auth.username': 'As the carrier gave it.',
      'auth.password': 'It is not shown again. In a change, empty leaves it as it is.',
      'auth.realm': 'Only challenges of this realm are answered. Empty: those of any.',
      'auth.from_user': 'Empty: the number of the caller.',
      'auth.from_domain': 'Empty: the address of this installation.',
      'auth.expires': 'Empty: 3600.',
      payer: '',
      customer:
        'Its wallet is charged. None: calls from it are refused, unless the setting ' +
        'UNKNOWN_CALLER allows them.',
      inbound_set: 'None: the inbound routes decide.',
      rate_plan:
        'What the carrier charges: for the margin, and for routes to the cheapest carrier.',
      max_calls: '0: no limit.',
      max_cps: '0: no limit.',
      'stir.sign': 'A call that cannot be signed goes on without.',
      'stir.verify': 'They prove the number of the caller.',
      preset: 'Sets TLS, SRTP, codecs, digits and headers as such a service needs them.',
      'gateways.host': 'An IP address or a name.',
      'gateways.port': '0: as DNS says, else 5060.',
      'gateways.netmask': 'Of the network from which it calls. Empty: this address only.',
      'number_rules.in': 'A pattern such as ^00 finds a part of the number.',
      'number_rules.out': 'A pattern such as ^00 finds a part of the number.',
    },
    words: {
      ...mediaForm.words,
      direction: { both: 'from it and to it', in: 'only from it', out: 'only to it' },
      'auth.type': {
        ip: 'by our address',
        digest: 'by user name and password, in each call',
        register: 'by our registration',
      },
      payer: {
        customer: 'one customer',
        from_number: 'the customer who has the number of the caller',
      },
      'caller_id.mode': {
        pass: 'as the caller sends it',
        fixed: 'always the same',
        pai: 'in P-Asserted-Identity',
      },
      'stir.verify': {
        off: 'are not looked at',
        mark: 'are noted in the record',
        refuse: 'must be right: other calls are refused',
      },
      preset: {
        '': 'a usual carrier',
        'ai-openai': 'OpenAI',
        'ai-livekit': 'LiveKit',
        'ai-generic': 'another AI voice service',
      },
    },
    shown: (row) => ({
      ...row,
      gateways: (row['gateways'] as readonly FormRow[]).map(withoutMask),
    }),
  },
}

/** The length that means a single address is the default. */
const withoutMask = ({ netmask, ...gateway }: FormRow): FormRow =>
  netmask === 32 || netmask === 128 ? gateway : { ...gateway, netmask }
