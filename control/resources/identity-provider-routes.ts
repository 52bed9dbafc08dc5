/** `/identity-providers`: the five routes, with the address that the provider has to know. */
import { Hono, type MiddlewareHandler } from 'hono'
import { refusePersonBy } from '../auth/issue-key.ts'
import { redirectUriOf } from './single-sign-on-routes.ts'
import type { ChangeDeps } from '../changes/kinds.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { identityProviders } from './identity-providers.ts'
import { resourceRoutes } from './resource-routes.ts'

interface IdentityProviderRoutesDeps extends ChangeDeps {
  readonly settings: ChangeDeps['settings'] & { readonly publicUrl?: string | undefined }
}

export function identityProviderRoutes(deps: IdentityProviderRoutesDeps) {
  const app = new Hono<ControlEnv>()
  // A provider makes persons, as whoever writes users does.
  const asPerson: MiddlewareHandler<ControlEnv> = (c, next) => {
    const presented = c.get('presented')
    if (presented.kind === 'accepted') refusePersonBy(presented.principal)
    return next()
  }
  app.post('/identity-providers', asPerson)
  app.patch('/identity-providers/:id', asPerson)
  return app.route(
    '/',
    resourceRoutes(deps, identityProviders, {
      show: (provider) => ({
        ...provider,
        redirect_uri: redirectUriOf(deps.settings.publicUrl, provider.id) ?? null,
      }),
    }),
  )
}
