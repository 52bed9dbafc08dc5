/** Keys that sign calls (STIR/SHAKEN). */
import type { StirKey } from '../api/views.ts'
import { tenantLine, textColumn } from '../parts/columns.tsx'
import { ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'
import { Text } from '../parts/text.tsx'

const states: Readonly<Record<string, string>> = {
  in_use: 'signs calls',
  usable: 'a newer key signs',
  waiting: 'has not begun',
  expired: 'expired',
  off: 'off',
  unusable: 'cannot sign',
}

const stateOf = ({ status }: StirKey): string => states[status?.state ?? ''] ?? 'not read yet'

const noun: ScreenNoun<StirKey & { readonly id: number }> = {
  one: 'signing key',
  many: 'Signing keys',
  scope: 'carriers',
  about: 'A signing key vouches for the number of a caller, as STIR/SHAKEN asks for it.',
  effect: 'It does not sign calls any more.',
  nameOf: ({ name }) => name,
  columns: [
    textColumn('name', 'Name', ({ name }) => name, {
      also: ({ tenant }) => tenant,
      second: (each) => tenantLine(each),
    }),
    textColumn('subject', 'Certificate', ({ subject }) => subject, {
      max: 60,
      also: ({ status }) => status?.x5u ?? null,
      second: ({ status }) => status?.x5u != null && <Text value={status.x5u} max={80} />,
    }),
    textColumn('until', 'Until', ({ status }) => status?.until?.slice(0, 10) ?? null),
    textColumn('state', 'State', stateOf, {
      also: ({ status }) => status?.why ?? null,
      second: ({ status }) => status?.why != null && <Text value={status.why} max={80} />,
      tone: ({ status }) => {
        if (status?.state === 'in_use') return 'good'
        return status?.state === 'unusable' || status?.state === 'expired' ? 'bad' : 'plain'
      },
    }),
  ],
  form: {
    path: '/stir/keys',
    names: ['name', 'tenant', 'private_key', 'certificate', 'x5u'],
    more: ['valid_from', 'valid_until', 'is_active'],
    labels: {
      private_key: 'Private key',
      certificate: 'Certificate',
      x5u: 'Address of the certificate',
      valid_from: 'Signs from',
      valid_until: 'Signs until',
      is_active: 'In use',
    },
    hints: {
      tenant: 'None: calls of all tenants without a key.',
      private_key: 'PEM, P-256, without a password. It is never shown again.',
      certificate: 'PEM, with those up to the authority. None: it is fetched.',
      x5u: 'None: it is published here.',
    },
    words: {},
  },
}

export const StirKeysScreen = () => <ResourceScreen noun={noun} />
