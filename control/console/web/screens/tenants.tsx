/** Tenants: organisations with their SIP domains and numbers. */
import type { Tenant } from '../api/views.ts'
import { momentColumn, textColumn } from '../parts/columns.tsx'
import type { Use } from '../parts/many-of.ts'
import { ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'
import { Text } from '../parts/text.tsx'
import { mediaForm } from './media-form.ts'

const use = (path: string, one: string, name?: string): Use<Tenant> => ({
  path,
  one,
  many: `${one}s`,
  isUse: (other, { slug }) => other['tenant'] === slug || other['tenant_slug'] === slug,
  ...(name !== undefined && { name }),
})

const noun: ScreenNoun<Tenant> = {
  one: 'tenant',
  many: 'Tenants',
  scope: 'tenants',
  about:
    'A tenant is an organisation with its own phones, customers and users, which see ' +
    'nothing of other tenants. Its phones register with one of its SIP domains.',
  effect: 'Its domains and numbers are free for others. It cannot be undone.',
  nameOf: ({ slug }) => slug,
  uses: [
    use('/pbx/extensions/details', 'extension', 'extension'),
    use('/customers', 'customer'),
    use('/routing/carriers', 'carrier'),
    use('/outbound-routes', 'outbound route'),
    use('/inbound-routes', 'inbound route'),
    use('/dispatcher', 'dispatcher set', 'endpoint_name'),
    use('/rate-plans', 'rate plan'),
    use('/users', 'user', 'username'),
    use('/application-keys', 'key'),
  ],
  columns: [
    textColumn('slug', 'Short name', ({ slug }) => slug, {
      also: ({ name }) => name,
      second: ({ name, slug }) => name !== slug && <Text value={name} max={60} />,
    }),
    textColumn('domains', 'SIP domains', ({ domains }) => domains.join(', '), {
      max: 60,
      also: ({ numbers }) => numbers.join(', '),
      second: ({ numbers }) => numbers.length > 0 && <Text value={numbers.join(', ')} max={60} />,
    }),
    textColumn('state', 'State', ({ is_active }) => (is_active ? 'active' : 'inactive'), {
      tone: ({ is_active }) => (is_active ? 'good' : 'plain'),
    }),
    momentColumn('created', 'Since', (tenant) => tenant.created_at, { isMinor: true }),
  ],
  form: {
    path: '/tenants',
    names: ['slug', 'name', 'domains', 'numbers', 'time_zone', 'is_active'],
    more: mediaForm.names,
    labels: {
      ...mediaForm.labels,
      slug: 'Short name',
      name: 'Display name',
      domains: 'SIP domains',
      is_active: 'May call',
    },
    hints: {
      ...mediaForm.hints,
      slug: 'Lower-case letters, digits and hyphens, such as acme.',
      name: 'Empty: the short name.',
      domains: 'One a line, such as acme.example. Phones register with it.',
      numbers:
        'One a line: numbers, or the start of a block of numbers. The tenant may route ' +
        'calls to them.',
    },
    words: mediaForm.words,
  },
}

export const TenantsScreen = () => <ResourceScreen noun={noun} />
