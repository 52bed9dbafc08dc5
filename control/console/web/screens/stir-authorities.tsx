/** Authorities that vouch for signers of calls (STIR/SHAKEN). */
import { textColumn } from '../parts/columns.tsx'
import { ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'

interface StirAuthority {
  readonly id: number
  readonly name: string
  readonly subject: string | null
  readonly expires_at: string | null
  readonly is_active: boolean
}

const noun: ScreenNoun<StirAuthority> = {
  one: 'signing authority',
  many: 'Signing authorities',
  scope: 'carriers',
  about: 'A signature of a call holds when its certificate comes from one of these authorities.',
  effect: 'Calls that its signers have signed do not pass any more.',
  nameOf: ({ name }) => name,
  columns: [
    textColumn('name', 'Name', ({ name }) => name),
    textColumn('subject', 'Certificate', ({ subject }) => subject, { max: 80 }),
    textColumn('expires', 'Until', ({ expires_at }) => expires_at?.slice(0, 10) ?? null),
    textColumn('state', 'State', ({ is_active }) => (is_active ? 'trusted' : 'off'), {
      tone: ({ is_active }) => (is_active ? 'good' : 'plain'),
    }),
  ],
  form: {
    path: '/stir/authorities',
    names: ['name', 'certificate', 'is_active'],
    more: [],
    labels: { certificate: 'Certificates', is_active: 'Trusted' },
    hints: { certificate: 'PEM, 10 at most.' },
    words: {},
  },
}

export const StirAuthoritiesScreen = () => <ResourceScreen noun={noun} />
