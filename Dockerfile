# syntax=docker/dockerfile:1
# An exact version; `docker buildx imagetools inspect` prints the digest to add, as `@sha256:…`.
FROM node:24.21.0-bookworm AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without its scripts: they bring the Node that is here, and make the client library.
RUN npm ci --ignore-scripts
COPY . .
RUN node build.mjs

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production \
    DATABASE_PATH=/data/tollgate.db
WORKDIR /app
COPY --from=build /app/package.json ./
# dist/ contains all other packages.
COPY --from=build /app/node_modules/@node-rs ./node_modules/@node-rs
COPY --from=build /app/dist ./dist
RUN mkdir -m 700 /data && chown node:node /data
USER node
VOLUME /data
# The API listens on loopback. On a bridge network: -e API_LISTEN=0.0.0.0:8080 -p 127.0.0.1:8080:8080
EXPOSE 5060/udp 5060/tcp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "const at=(process.env.API_LISTEN||'127.0.0.1:8080').replace(/^0\\.0\\.0\\.0(?=:)/,'127.0.0.1').replace('[::]','[::1]');process.env.NODE_TLS_REJECT_UNAUTHORIZED='0';fetch((process.env.API_TLS_CERT?'https://':'http://')+at+'/readyz').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"]
# No npm and no shell in between: the signal to stop reaches the process itself.
ENTRYPOINT ["node", "dist/main.js"]
CMD ["serve"]
