/** A tenant with phones that may call each other, as `tollgate seed` takes it. */
export const domain = 'acme.example'

export const passwordOf = (extension: string): string => `secret-${extension}`

const phones = (...extensions: readonly string[]) => ({
  tenants: [{ slug: 'acme', domains: [domain] }],
  extensions: extensions.map((extension) => ({
    tenant: 'acme',
    extension,
    password: passwordOf(extension),
    display_name: `Phone ${extension}`,
  })),
})

export const twoPhones = phones('101', '102')
export const threePhones = phones('101', '102', '103')
export const fourPhones = phones('101', '102', '103', '104')
