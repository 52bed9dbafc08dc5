# syntax=docker/dockerfile:1
FROM node:24-bookworm AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN npm run build && npm prune --omit=dev

FROM node:24-bookworm-slim
ENV NODE_ENV=production \
    DATABASE_PATH=/data/tollgate.db \
    API_LISTEN=0.0.0.0:8080 \
    EDGE_LISTEN=0.0.0.0:8081
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
RUN mkdir -m 700 /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 5060/udp 5060/tcp 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:'+process.env.API_LISTEN.split(':').pop()+'/readyz').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"]
# No npm and no shell in between: the signal to stop reaches the process itself.
ENTRYPOINT ["node", "dist/main.js"]
CMD ["serve"]
