/**
 * Outbound routes: which carrier takes a call; and inbound routes: where a call from a carrier
 * goes.
 */
import type { InboundRoute, OutboundRoute } from '../api/views.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'
import type { FormRow } from '../parts/schema-fields.ts'
import { Target } from './call-target.tsx'
import { lossForm } from './loss-form.ts'
import { distributionWords, modes, routeColumns } from './route-columns.ts'

const activeText = ({ is_active }: { readonly is_active: boolean }): string =>
  is_active ? 'active' : 'inactive'

const activeColumn = <Of extends { readonly is_active: boolean }>() =>
  textColumn<Of>('state', 'State', activeText, {
    tone: ({ is_active }) => (is_active ? 'good' : 'plain'),
  })

const outbound: ScreenNoun<OutboundRoute> = {
  one: 'outbound route',
  many: 'Outbound routes',
  scope: 'routes',
  about:
    'A call to a number goes over the routes with the longest matching prefix: first the ' +
    'one with the lowest priority; if its carrier fails, the next one.',
  effect: 'Calls to its prefix take other routes, or are refused if there is none.',
  nameOf: ({ name }) => name,
  columns: [...routeColumns, activeColumn()],
  form: {
    path: '/outbound-routes',
    names: ['name', 'prefix', 'mode', 'carrier', 'priority'],
    more: [
      'tenant',
      'customer',
      'weight',
      'distribution',
      'quality.min_asr',
      'quality.min_acd',
      'quality.max_pdd_ms',
      'quality.window',
      'quality.min_calls',
      ...lossForm.names,
      'strip',
      'prepend',
      'is_active',
      'emergency',
    ],
    labels: {
      ...lossForm.labels,
      mode: 'What happens to the call',
      customer: 'Only calls of',
      distribution: 'Calls are shared',
      'quality.min_asr': 'Answered calls, at least (%)',
      'quality.min_acd': 'Length of a call, at least (s)',
      'quality.max_pdd_ms': 'Time to ring, at most (ms)',
      'quality.window': 'Measured over (s)',
      'quality.min_calls': 'Judged by so many calls',
      strip: 'Digits to remove',
      prepend: 'Digits to add',
      is_active: 'In use',
      emergency: 'Emergency number',
    },
    hints: {
      ...lossForm.hints,
      prefix: 'The start of the called number, without +. Empty: every number.',
      mode:
        'Routes to the cheapest carrier are tried in the order of the prices in the rate ' +
        'plans of their carriers.',
      carrier: '',
      customer: 'None: the calls of all customers.',
      weight: 'Among routes of the same priority, a higher weight gets more calls.',
      distribution: 'Among routes of the same prefix and priority; one says it for all of them.',
      'quality.min_asr': 'Below it, its carrier is tried after all other routes. Empty: no floor.',
      'quality.min_acd': 'The mean of answered calls. Empty: no floor.',
      'quality.max_pdd_ms': 'The mean until the first ringing. Empty: no limit.',
      'quality.window': '',
      'quality.min_calls': '',
      strip: 'From the start of the number.',
      prepend: 'At the start of the number, after digits were removed.',
      emergency: 'Its calls need no money, and no limit applies to them.',
    },
    words: { ...lossForm.words, mode: { ...modes }, distribution: { ...distributionWords } },
    when: { ...lossForm.when, carrier: ['mode', 'static', 'lcr'] },
  },
}

export const OutboundRoutesScreen = () => <ResourceScreen noun={outbound} />

const targetOf = ({ set_id, extension, agent }: InboundRoute): string => {
  if (extension !== null) return `extension ${extension}`
  return agent === null ? `set ${set_id ?? ''}` : `AI agent ${agent}`
}

const targets = { set: 'a dispatcher set', extension: 'an extension', agent: 'an AI agent' }

const targetIn = (row: FormRow | undefined): string => {
  if (typeof row?.['extension'] === 'string') return 'extension'
  return typeof row?.['agent'] === 'string' ? 'agent' : 'set'
}

const inbound: ScreenNoun<InboundRoute> = {
  one: 'inbound route',
  many: 'Inbound routes',
  scope: 'routes',
  about:
    'A call from a carrier goes to the target of the first route that matches: the lowest ' +
    'priority first, then the longest prefix.',
  effect: 'Its calls go to other routes, or are refused if there is none.',
  nameOf: ({ name }) => name,
  columns: [
    textColumn('name', 'Name', ({ name }) => name),
    textColumn('prefix', 'Called number', ({ prefix }) => prefix, {
      show: ({ prefix }) => (prefix === null || prefix === '' ? 'every number' : `${prefix}…`),
    }),
    textColumn('carrier', 'From', ({ carrier }) => carrier, {
      show: ({ carrier }) => carrier ?? 'any carrier',
    }),
    textColumn('target', 'Goes to', targetOf, {
      show: (each) => <Target setId={each.set_id} text={targetOf(each)} />,
    }),
    figureColumn('priority', 'Priority', ({ priority }) => priority),
    textColumn('domain', 'Domain', ({ domain }) => domain, { isMinor: true }),
    textColumn('tenant', 'Tenant', ({ tenant }) => tenant, { isMinor: true }),
    activeColumn(),
  ],
  form: {
    path: '/inbound-routes',
    names: ['name', 'prefix', 'carrier', 'set', 'extension', 'extension_domain', 'agent'],
    more: ['tenant', 'domain', 'verification', 'priority', 'is_active'],
    choice: { name: 'target', label: 'Calls go to', options: targets, of: targetIn },
    labels: {
      prefix: 'Called number',
      carrier: 'From the carrier',
      set: 'Dispatcher set',
      extension_domain: 'Its domain',
      agent: 'AI agent',
      is_active: 'In use',
      domain: 'Only calls to the domain',
      verification: 'Only calls whose caller is',
    },
    hints: {
      prefix: 'A number or the start of numbers, without +. Empty: every number.',
      carrier: 'None: calls from every carrier.',
      set: '',
      agent: '',
      extension_domain: 'Needed only where several domains have the extension.',
      domain: 'That of the Request-URI. Empty: every domain.',
      verification: 'Only carriers whose signatures are looked at send such calls.',
    },
    words: {
      verification: {
        '': 'anybody',
        passed: 'proved by a signature',
        failed: 'wrong by a signature',
        none: 'not signed',
      },
    },
    when: {
      set: ['target', 'set'],
      extension: ['target', 'extension'],
      extension_domain: ['target', 'extension'],
      agent: ['target', 'agent'],
    },
  },
}

export const InboundRoutesScreen = () => <ResourceScreen noun={inbound} />
