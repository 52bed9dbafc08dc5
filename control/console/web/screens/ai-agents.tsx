/** AI agents: numbers whose calls go to a voice service. */
import type { AiAgent } from '../api/views.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'
import { mediaForm } from './media-form.ts'

const noun: ScreenNoun<AiAgent & { readonly id: number }> = {
  one: 'AI agent',
  many: 'AI agents',
  scope: 'agents',
  about: 'An AI agent is a number whose calls go to the SIP address of a voice service.',
  effect: 'Its number cannot be called any more.',
  nameOf: ({ name }) => name,
  uses: [
    {
      path: '/inbound-routes',
      one: 'inbound route',
      many: 'inbound routes',
      isUse: (route, { name }) => route['agent'] === name,
    },
  ],
  columns: [
    textColumn('name', 'Name', ({ name }) => name),
    textColumn('extension', 'Number', ({ extension }) => extension),
    textColumn('uri', 'Voice service', ({ sip_uri }) => sip_uri),
    figureColumn('calls', 'Live calls', ({ active_calls }) => active_calls),
    textColumn('tenant', 'Tenant', ({ tenant }) => tenant, { isMinor: true }),
    textColumn('state', 'State', ({ is_active }) => (is_active ? 'active' : 'inactive'), {
      tone: ({ is_active }) => (is_active ? 'good' : 'plain'),
    }),
  ],
  form: {
    path: '/telephony/ai-agents',
    names: ['name', 'extension', 'sip_uri', 'preset', 'tenant'],
    more: ['description', 'max_calls', 'is_active', ...mediaForm.names, 'strip_headers'],
    labels: {
      ...mediaForm.labels,
      extension: 'Number',
      sip_uri: 'SIP address',
      preset: 'Kind of service',
      max_calls: 'Calls at once, at most',
      is_active: 'In use',
    },
    hints: {
      ...mediaForm.hints,
      extension: '',
      sip_uri: 'Such as sip:agent@voice.example;transport=tls.',
      preset: 'Sets TLS, SRTP, codecs, digits and headers as such a service needs them.',
      tenant: 'None: every tenant may call it.',
      max_calls: '0: no limit. Further callers hear busy.',
    },
    words: {
      ...mediaForm.words,
      preset: {
        '': 'none of these',
        'ai-openai': 'OpenAI',
        'ai-livekit': 'LiveKit',
        'ai-generic': 'another one with TLS',
      },
    },
  },
}

export const AiAgentsScreen = () => <ResourceScreen noun={noun} />
