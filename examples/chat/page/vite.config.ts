import { defineConfig } from "vite";

export default defineConfig({
  // `npm run dev` finds the backend where `python server.py` has it.
  server: { host: "127.0.0.1", proxy: { "/api": "http://127.0.0.1:8000" } },
  build: {
    rollupOptions: {
      // React's packages say "use client", which means nothing here.
      onwarn: (warning, tell) => warning.code !== "MODULE_LEVEL_DIRECTIVE" && tell(warning),
    },
  },
});
