/** A tenant with two phones that may call each other, as `tollgate seed` takes it. */
export const domain = 'acme.example'

export const passwordOf = (extension: string): string => `secret-${extension}`

export const twoPhones = {
  tenants: [{ slug: 'acme', domains: [domain] }],
  extensions: ['101', '102'].map((extension) => ({
    ...{ tenant: 'acme', extension, password: passwordOf(extension) },
    display_name: `Phone ${extension}`,
  })),
}
